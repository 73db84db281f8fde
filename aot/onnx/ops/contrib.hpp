// What the importers of onnxruntime's own operators (domain com.microsoft) share. Their meaning:
// docs/ContribOperators.md of onnxruntime, and what its CPU provider does where the text leaves it open.
#pragma once

#include "aot/onnx/node.hpp"

namespace kiln::onnx_import {

inline constexpr std::string_view microsoft_domain = "com.microsoft";

// The activations that fused operators name, with attributes activation_alpha, activation_beta or activation_params.
// Refuses others by name.
value activated(node& n, value x);

value exact_gelu(builder& b, value x);
value tanh_gelu(builder& b, value x);

// (q - zero point) * scale in f32; scale and zero point of one element, or along `axis`. An empty zero point is 0.
value dequantized(builder& b, value q, value scale, value zero_point, std::optional<std::int64_t> axis = std::nullopt);
// x / scale, rounded and moved into the type of the zero point; one scale for the tensor.
value requantized(builder& b, value x, value scale, value zero_point);
// numpy.matmul of a and b, summed in `type`.
value matmul(builder& b, value x, value y, element_type type);

}  // namespace kiln::onnx_import
