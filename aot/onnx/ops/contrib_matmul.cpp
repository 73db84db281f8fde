// Matrix products from onnxruntime's domain: with fused transposes and scales, and with weights of a few bits.
#include <algorithm>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// transpose_batch: the first axis holds the rows and is followed by the batch axes. transpose: the last two axes are
// swapped.
value turned(node& n, std::size_t i, std::string_view transpose, std::string_view transpose_batch) {
  value x = n.in(i);
  auto rank = static_cast<std::int64_t>(x.type().rank());
  std::vector<std::int64_t> order;
  for (std::int64_t a = 0; a < rank; ++a) order.push_back(a);
  if (rank >= 2 && n.integer(transpose_batch, 0)) std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  if (rank >= 2 && n.integer(transpose, 0)) std::swap(order[order.size() - 1], order[order.size() - 2]);
  return n.b.permuted(x, order);
}

std::vector<value> fused_matmul(node& n) {
  value product =
      matmul(n.b, turned(n, 0, "transA", "transBatchA"), turned(n, 1, "transB", "transBatchB"), n.type(0).type);
  double alpha = n.real("alpha", 1);
  return {alpha == 1 ? product : n.b.binary(fn::mul, product, alpha)};
}

// Returns element i of a stream with `bits` bits per element, low bits first.
std::uint8_t packed_at(std::span<const std::uint8_t> bytes, std::int64_t i, std::int64_t bits) {
  std::int64_t per_byte = 8 / bits;
  return static_cast<std::uint8_t>((bytes[static_cast<std::size_t>(i / per_byte)] >> (i % per_byte * bits)) &
                                   ((1 << bits) - 1));
}

struct blocked_weights {
  std::int64_t rows, depth, bits, block, blocks;
};

blocked_weights weights_of(node& n) {
  blocked_weights w{n.integer("N", 0), n.integer("K", 0), n.integer("bits", 4), n.integer("block_size", 0), 0};
  if (w.bits != 2 && w.bits != 4 && w.bits != 8)
    refuse("weights of " + std::to_string(w.bits) + " bits are not supported, only of 2, 4 and 8");
  if (w.rows < 1 || w.depth < 1 || w.rows > largest_dim || w.depth > largest_dim || w.block < 16 || w.block > 1 << 20 ||
      (w.block & (w.block - 1)))
    invalid("K " + std::to_string(w.depth) + ", N " + std::to_string(w.rows) + " and block_size " +
            std::to_string(w.block) + " are not a valid combination");
  w.blocks = (w.depth + w.block - 1) / w.block;
  return w;
}

// Returns the weights as [N, blocks, block] of u4 or u8. ONNX and Kiln both put the low nibble first.
value elements_of(node& n, const blocked_weights& w) {
  literal data = n.constant(1, "B");
  if (data.type().type != element_type::u8 || data.type().element_count() != w.rows * w.blocks * w.block * w.bits / 8)
    invalid("B is " + data.type().str() + ", not " + std::to_string(w.rows * w.blocks) + " blocks of " +
            std::to_string(w.block) + " elements of " + std::to_string(w.bits) + " bits");
  std::vector<dim> dims{w.rows, w.blocks, w.block};
  if (w.bits == 8) return n.b.constant(data.reshaped(dims));
  std::vector<std::byte> bytes(data.bytes().begin(), data.bytes().end());
  // There is no 2-bit type: each byte becomes two bytes of 4-bit elements.
  if (w.bits == 2) {
    auto from = data.as<std::uint8_t>();
    bytes.assign(bytes.size() * 2, std::byte{});
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      auto first = static_cast<std::int64_t>(2 * i);
      bytes[i] = static_cast<std::byte>(packed_at(from, first, 2) | packed_at(from, first + 1, 2) << 4);
    }
  }
  return n.b.constant(literal(shape{element_type::u4, dims}, std::move(bytes)));
}

// Returns zero points [N, blocks, 1] in the compute type. The input is packed row by row, or has one float for each
// block. The default is half of the range.
value zero_points_of(node& n, const blocked_weights& w, element_type type) {
  std::vector<dim> dims{w.rows, w.blocks, 1};
  if (!n.has(3)) return n.b.scalar(type, static_cast<double>(1 << (w.bits - 1)));
  if (is_float(n.type(3).type)) return n.b.to_type(n.b.with_dims(n.in(3), dims), type);
  literal data = n.constant(3, "zero_points");
  std::int64_t row_bytes = (w.blocks * w.bits + 7) / 8;
  if (data.type().type != element_type::u8 || data.type().element_count() != w.rows * row_bytes)
    invalid("zero_points are " + data.type().str() + ", not " + std::to_string(w.rows * row_bytes) + " bytes");
  std::vector<double> numbers;
  for (std::int64_t row = 0; row < w.rows; ++row)
    for (std::int64_t block = 0; block < w.blocks; ++block)
      numbers.push_back(
          packed_at(data.as<std::uint8_t>().subspan(static_cast<std::size_t>(row * row_bytes)), block, w.bits));
  return n.b.constant(literal::from_doubles({type, dims}, numbers));
}

// Multiplies A [..., K] by the transpose of weights [N, K]. The weights are blocks of small integers with one scale and
// zero point per block.
std::vector<value> matmul_n_bits(node& n) {
  builder& b = n.b;
  if (n.has(4)) refuse("input 4 (g_idx) is not supported");
  blocked_weights w = weights_of(n);
  element_type type = n.type(0).type;
  if (n.rank(0) == 0 || !(n.dims(0).back() == dim(w.depth)))
    invalid("A is " + n.type(0).str() + ", K is " + std::to_string(w.depth));
  value centred = b.binary(fn::sub, b.to_type(elements_of(n, w), type), zero_points_of(n, w, type));
  value scaled = b.binary(fn::mul, centred, b.to_type(b.with_dims(n.in(2), {w.rows, w.blocks, 1}), type));
  value weights = b.with_dims(scaled, {w.rows, w.blocks * w.block});
  if (w.blocks * w.block != w.depth) weights = b.slice_axis(weights, 1, 0, w.depth);
  dim rows = 1;
  for (std::size_t i = 0; i + 1 < n.rank(0); ++i) rows = rows * n.dims(0)[i];
  value product = b.add(dot{false, true, type}, {b.with_dims(n.in(0), {rows, w.depth}), weights});
  auto dims = n.dims(0);
  dims.back() = w.rows;
  product = b.with_dims(product, dims);
  return {n.has(5) ? b.binary(fn::add, product, n.in(5)) : product};
}

constexpr operator_row rows[] = {
    {"FusedMatMul", fused_matmul, 1, "", microsoft_domain},
    {"TransposeMatMul", fused_matmul, 1, "", microsoft_domain},
    {"MatMulNBits", matmul_n_bits, 1, "constant weights, no g_idx", microsoft_domain},
};

}  // namespace

std::span<const operator_row> contrib_matmul_operators() { return rows; }

}  // namespace kiln::onnx_import
