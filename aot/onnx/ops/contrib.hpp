// Helpers shared by the importers of onnxruntime's own operators (domain com.microsoft). Their semantics are from
// onnxruntime's docs/ContribOperators.md, and from its CPU provider where the document is ambiguous.
#pragma once

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

inline constexpr std::string_view microsoft_domain = "com.microsoft";

// Applies the activation that a fused operator names, with its attributes activation_alpha, activation_beta or
// activation_params. Refuses unknown activations by name.
value activated(node& n, value x);

value exact_gelu(builder& b, value x);
value tanh_gelu(builder& b, value x);

// Returns (q - zero point) * scale in f32. Scale and zero point have one element, or one per index along `axis`. An
// empty zero point is 0.
value dequantized(builder& b, value q, value scale, value zero_point, std::optional<std::int64_t> axis = std::nullopt);
// Quantizes x: round(x / scale) + zero_point, saturated to the zero point's type. There is one scale for the whole
// tensor.
value requantized(builder& b, value x, value scale, value zero_point);
// Multiplies integers minus their zero points in i32, scales the product in f32 and adds a bias. Scales and zero points
// may be per column of the weights. Zero points and bias may be empty.
value scaled_product(builder& b, value a, value a_scale, value a_zero, value weights, value b_scale, value b_zero,
                     value bias);
// Returns numpy.matmul(x, y), accumulated in `type`.
value matmul(builder& b, value x, value y, element_type type);

// Transposes an image [N, spatial..., C] to [N, C, spatial...], or back.
value channels_second(builder& b, value x);
value channels_last(builder& b, value x);

}  // namespace kiln::onnx_import
