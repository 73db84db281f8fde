// Quantized tensors as arithmetic on ordinary tensors: q = saturate(round(x / scale) + zero point).
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/window.hpp"
#include "aot/onnx/tensors.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

bool is_number_of_blocks(const dim& count, const dim& length, std::int64_t block) {
  if (count * dim(block) == length) return true;
  return count.is_static() && length.is_static() && count.value() == (length.value() + block - 1) / block;
}

// Prepares a scale or zero point for broadcasting against x: one per tensor, one per index of the axis, or one per
// block.
value spread(node& n, value parameter) {
  builder& b = n.b;
  const auto dims = n.dims(0);
  std::int64_t block = n.opset >= 21 ? n.integer("block_size", 0) : 0;
  if (parameter.type().rank() == 0 ||
      (parameter.type().rank() == 1 && parameter.type().elements() == dim(1) && block == 0))
    return b.with_dims(parameter, {});
  auto axis = n.axis("axis", 1, dims.size());
  if (block == 0) {
    if (parameter.type().rank() != 1)
      invalid("scale and zero point must be scalars or vectors, not " + parameter.type().str());
    return b.along_axis(parameter, axis, dims.size());
  }
  auto at = static_cast<std::size_t>(axis);
  auto apart = parameter.type().dims;
  // The last block may be shorter.
  if (apart.size() != dims.size() || block < 1 || !is_number_of_blocks(apart[at], dims.at(at), block))
    invalid("scales " + parameter.type().str() + " do not fit " + n.type(0).str() + " in blocks of " +
            std::to_string(block));
  auto stretched = apart, whole = dims;
  whole[at] = apart[at] * dim(block);
  apart.insert(apart.begin() + axis + 1, 1);
  stretched.insert(stretched.begin() + axis + 1, block);
  value full = b.with_dims(b.broadcast_to(b.with_dims(parameter, apart), stretched), whole);
  return whole[at] == dims[at] ? full : b.slice_axis(full, axis, 0, dims[at]);
}

std::vector<value> quantize(node& n) {
  builder& b = n.b;
  element_type type = n.has(2) ? n.type(2).type
                      : n.integer("output_dtype", 0)
                          ? element_type_of(n.integer("output_dtype", 0), "attribute 'output_dtype'")
                          : element_type::u8;
  const bool small_float = small_float_format(type).has_value();
  if (!is_integer(type) && !small_float) invalid("cannot quantize to " + std::string(name(type)));
  // The quotient is f32 unless the attribute precision (opset 23) specifies another type.
  element_type wide = n.integer("precision", 0) ? element_type_of(n.integer("precision", 0), "attribute 'precision'")
                                                : element_type::f32;
  if (!is_float(wide) || storage_bits(wide) < 16)
    invalid("attribute 'precision' is " + std::string(name(wide)) + ", not a floating type of at least 16 bits");
  value real = b.to_type(n.in(0), wide), scale = b.to_type(spread(n, n.in(1)), wide);
  value scaled = b.to_type(b.binary(fn::div, real, scale), wide == element_type::f64 ? wide : element_type::f32);
  if (small_float)
    // For these types ONNX requires a zero point of 0, so it need not be added.
    return {n.integer("saturate", 1) ? saturated_f8(b, scaled, type) : b.to_type(scaled, type)};
  value zero = n.has(2) ? spread(n, n.in(2)) : b.scalar(type, 0);
  return {quantized(b, scaled, zero)};
}

std::vector<value> dequantize(node& n) {
  builder& b = n.b;
  element_type type = n.integer("output_dtype", 0)
                          ? element_type_of(n.integer("output_dtype", 0), "attribute 'output_dtype'")
                          : n.type(1).type;
  if (!is_float(n.type(1).type)) invalid("the scale is " + n.type(1).str() + ", not floating");
  if (!is_float(type)) invalid("attribute 'output_dtype' is " + std::string(name(type)) + ", not a floating type");
  value real = b.to_type(n.in(0), element_type::f32);
  if (n.has(2)) real = b.binary(fn::sub, real, b.to_type(spread(n, n.in(2)), element_type::f32));
  return {b.to_type(b.binary(fn::mul, real, b.to_type(spread(n, n.in(1)), element_type::f32)), type)};
}

std::vector<value> dynamic_quantize(node& n) {
  builder& b = n.b;
  value x = n.in(0);
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < x.type().rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  value low = b.binary(fn::min, b.reduced(reduction_kind::min, x, axes, false), 0.0);
  value high = b.binary(fn::max, b.reduced(reduction_kind::max, x, axes, false), 0.0);
  value scale = b.binary(fn::div, b.binary(fn::sub, high, low), 255.0);
  value zero = quantized(b, b.binary(fn::div, b.unary(fn::neg, low), scale), b.scalar(element_type::u8, 0));
  return {quantized(b, b.binary(fn::div, x, scale), zero), scale, zero};
}

constexpr operator_row rows[] = {
    {"QuantizeLinear", quantize, 10},
    {"DequantizeLinear", dequantize, 10},
    {"DynamicQuantizeLinear", dynamic_quantize, 11},
};

}  // namespace

std::span<const operator_row> quantization_operators() { return rows; }

}  // namespace kiln::onnx_import
