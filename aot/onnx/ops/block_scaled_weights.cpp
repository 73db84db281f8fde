// Products of onnxruntime's domain whose weights are 8-bit or 4-bit floats with a scale for each block.
#include <cmath>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"
#include "aot/onnx/ops/packed_weights.hpp"
#include "aot/onnx/ops/window.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

std::int64_t block_size_of(node& n, std::int64_t otherwise) {
  const std::int64_t block = n.integer("block_size", otherwise);
  if (block < 1 || block > 1 << 20) invalid("block_size is " + std::to_string(block));
  return block;
}

// Multiplies A [..., K] by the transpose of weights f32[N, K] times a scale for each block of a row, and adds the
// optional bias of input `bias`. The weights are rounded to the type of A.
std::vector<value> scaled_product_of(node& n, value a, value weights, value scales, std::int64_t block,
                                     std::size_t bias) {
  builder& b = n.b;
  const element_type type = n.type(0).type, wide = compute_type(type);
  const std::int64_t depth = static_dim(weights.type().dims[1], "the depth of the weights");
  value spread = repeated_blocks(b, b.to_type(scales, element_type::f32), 1, block, depth);
  value scaled = b.to_type(b.binary(fn::mul, weights, spread), type);
  value y = b.to_type(matmul(b, a, b.permuted(scaled, {1, 0}), type), wide);
  if (n.has(bias)) y = b.binary(fn::add, y, b.to_type(n.in(bias), wide));
  return {b.to_type(y, type)};
}

// inputs: A, weights f8e4m3[N, K], scales [N, blocks], the scale to which A is quantized, bias.
std::vector<value> product_with_float8(node& n) {
  builder& b = n.b;
  if (n.rank(1) != 2 || n.rank(2) != 2 || n.type(1).type != element_type::f8e4m3)
    invalid("weights " + n.type(1).str() + " and scales " + n.type(2).str() + " do not fit");
  value a = n.in(0);
  if (n.has(3)) {
    value scale = b.with_dims(b.to_type(n.in(3), element_type::f32), {});
    value levels = saturated_f8(b, b.binary(fn::div, b.to_type(a, element_type::f32), scale), element_type::f8e4m3);
    a = b.to_type(b.binary(fn::mul, b.to_type(levels, element_type::f32), scale), n.type(0).type);
  }
  return scaled_product_of(n, a, b.to_type(n.in(1), element_type::f32), n.in(2), block_size_of(n, 128), 4);
}

// The number that a byte of an f8e4m3 holds.
double float8_number(int byte) {
  const int exponent = byte >> 3 & 15, fraction = byte & 7;
  const double magnitude = exponent ? std::ldexp(8 + fraction, exponent - 10) : std::ldexp(fraction, -9);
  if (exponent == 15 && fraction == 7) return std::nan("");
  return byte & 128 ? -magnitude : magnitude;
}

// inputs: A, weights u8[N, K / 2] (two e2m1 a byte, low bits first), scales u8[N, blocks] (bytes of f8e4m3), a scale
// for all, a scale of A that nobody reads, bias.
std::vector<value> product_with_float4(node& n) {
  builder& b = n.b;
  if (n.rank(1) != 2 || n.rank(2) != 2 || n.type(2).type != element_type::u8)
    invalid("weights " + n.type(1).str() + " and scales " + n.type(2).str() + " do not fit");
  const std::int64_t rows = static_dim(n.dims(1)[0], "the rows of the weights"),
                     depth = 2 * static_dim(n.dims(1)[1], "the depth of the weights");
  value index = packed_elements(n, 1, "B", {rows, depth}, 4);
  value numbers =
      b.constant(literal::from_doubles({element_type::f32, {16}}, std::vector<double>{0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0,
                                                                                      -0.5, -1, -1.5, -2, -3, -4, -6}));
  value weights = b.add(gather{0}, {numbers, b.to_type(index, element_type::i64)});
  std::vector<double> bytes(256);
  for (int i = 0; i < 256; ++i) bytes[static_cast<std::size_t>(i)] = float8_number(i);
  value scales = b.add(gather{0}, {b.constant(literal::from_doubles({element_type::f32, {256}}, bytes)),
                                   b.to_type(n.in(2), element_type::i64)});
  scales = b.binary(fn::mul, scales, b.with_dims(b.to_type(n.in(3), element_type::f32), {}));
  return scaled_product_of(n, n.in(0), weights, scales, block_size_of(n, 16), 5);
}

constexpr operator_row rows[] = {
    {"MatMulBlockQuantizedFp8Weight", product_with_float8, 1, "", microsoft_domain},
    {"MatMulBlockQuantizedFp4Weight", product_with_float4, 1, "constant weights", microsoft_domain},
};

}  // namespace

std::span<const operator_row> block_scaled_weight_operators() { return rows; }

}  // namespace kiln::onnx_import
