// Matrix products from onnxruntime's domain: with fused transposes and scales, and with weights of a few bits.
#include <algorithm>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"
#include "aot/onnx/ops/packed_weights.hpp"

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

struct blocked_weights {
  std::int64_t rows, depth, bits, block, blocks;
};

blocked_weights weights_of(node& n) {
  blocked_weights w{n.integer("N", 0), n.integer("K", 0), checked_bits(n.integer("bits", 4)),
                    n.integer("block_size", 0), 0};
  if (w.rows < 1 || w.depth < 1 || w.rows > largest_dim || w.depth > largest_dim || w.block < 16 || w.block > 1 << 20 ||
      (w.block & (w.block - 1)))
    invalid("K " + std::to_string(w.depth) + ", N " + std::to_string(w.rows) + " and block_size " +
            std::to_string(w.block) + " are not a valid combination");
  w.blocks = (w.depth + w.block - 1) / w.block;
  return w;
}

// Returns zero points [N, blocks, 1] in the compute type. The input is packed row by row, or has one float for each
// block. The default is half of the range.
value zero_points_of(node& n, const blocked_weights& w, element_type type) {
  std::vector<dim> dims{w.rows, w.blocks, 1};
  if (!n.has(3)) return n.b.scalar(type, static_cast<double>(1 << (w.bits - 1)));
  if (is_float(n.type(3).type)) return n.b.to_type(n.b.with_dims(n.in(3), dims), type);
  return packed_numbers(n, 3, "zero_points", w.rows, w.blocks, w.bits, type, dims);
}

// Multiplies A [..., depth] by the transpose of the first `depth` columns of weights and adds an optional bias. All
// leading axes of A are merged into the rows of one product. If the weights have more columns, A gets zeros, so that
// the blocks of packed weights stay whole. left_bits: of the product (ir/ops/contraction.hpp).
value times_transposed(node& n, value weights, dim depth, value bias, std::int64_t left_bits = 0) {
  builder& b = n.b;
  const auto w = weights.type().dims;
  auto dims = n.dims(0);
  if (dims.empty() || dims.back() != depth)
    invalid("A is " + n.type(0).str() + ", the weights are " + w[0].str() + " x " + depth.str());
  dim rows = 1;
  for (std::size_t i = 0; i + 1 < dims.size(); ++i) rows = rows * dims.at(i);
  value left = b.with_dims(n.in(0), {rows, depth});
  if (!(w[1] == depth)) left = b.pad_axis(left, 1, 0, w[1] - depth, pad_mode::constant_, 0);
  value product = b.add(dot{false, true, n.type(0).type, left_bits}, {left, weights});
  dims.back() = w[0];
  product = b.with_dims(product, dims);
  return bias ? b.binary(fn::add, product, bias) : product;
}

// Multiplies A [..., K] by the transpose of weights [N, K]. The weights are blocks of small integers with one scale and
// zero point per block. With accuracy_level 4, the model allows A to be rounded to 8 bits.
std::vector<value> matmul_n_bits(node& n) {
  builder& b = n.b;
  if (n.has(4))
    refuse("input 4 (g_idx) is not supported; export the weights without reordering their columns (act_order)");
  if (n.integer("weight_prepacked", 0))
    refuse("weight_prepacked is the layout of one device; export with weight_prepacked=0");
  blocked_weights w = weights_of(n);
  element_type type = n.type(0).type;
  value elements = packed_elements(n, 1, "B", {w.rows, w.blocks, w.block}, w.bits);
  value centred = b.binary(fn::sub, b.to_type(elements, type), zero_points_of(n, w, type));
  value scaled = b.binary(fn::mul, centred, b.to_type(b.with_dims(n.in(2), {w.rows, w.blocks, 1}), type));
  value weights = b.with_dims(scaled, {w.rows, w.blocks * w.block});
  constexpr std::int64_t level_of_bytes = 4;
  const std::int64_t left_bits = n.integer("accuracy_level", 0) == level_of_bytes ? 8 : 0;
  return {times_transposed(n, weights, w.depth, n.has(5) ? n.in(5) : value{}, left_bits)};
}

// Code tables of bitsandbytes' 4-bit types, normalized to a block whose largest magnitude is 1.
constexpr double fp4_values[] = {0,   0.00520833,  0.66666667,  1,  0.33333333,  0.5,  0.16666667,  0.25,
                                 -0., -0.00520833, -0.66666667, -1, -0.33333333, -0.5, -0.16666667, -0.25};
constexpr double nf4_values[] = {-1.0,
                                 -0.6961928009986877,
                                 -0.5250730514526367,
                                 -0.39491748809814453,
                                 -0.28444138169288635,
                                 -0.18477343022823334,
                                 -0.09105003625154495,
                                 0.0,
                                 0.07958029955625534,
                                 0.16093020141124725,
                                 0.24611230194568634,
                                 0.33791524171829224,
                                 0.44070982933044434,
                                 0.5626170039176941,
                                 0.7229568362236023,
                                 1.0};

// Multiplies A [..., K] by the transpose of weights [N, K]; with transB=0, multiplies A [..., N] by the weights. The
// weights are 4-bit indices into a table of 16 values, the first of each pair in the high bits of the byte. Each block
// of the flattened matrix has one scale.
std::vector<value> matmul_bnb4(node& n) {
  builder& b = n.b;
  std::int64_t rows = n.integer("N", 0), depth = n.integer("K", 0), block = n.integer("block_size", 0),
               kind = n.integer("quant_type", 0);
  if (rows < 1 || depth < 1 || rows > largest_dim || depth > largest_dim || block < 1 || block > 1 << 20)
    invalid("K " + std::to_string(depth) + ", N " + std::to_string(rows) + " and block_size " + std::to_string(block) +
            " are not a valid combination");
  if (kind != 0 && kind != 1) invalid("quant_type is " + std::to_string(kind) + ", not 0 (FP4) or 1 (NF4)");
  literal data = n.constant(1, "B");
  std::int64_t count = rows * depth;
  if (data.type().type != element_type::u8 || data.type().element_count() != (count + 1) / 2)
    invalid("B is " + data.type().str() + ", not " + std::to_string((count + 1) / 2) + " bytes");
  std::vector<std::byte> bytes(data.bytes().begin(), data.bytes().end());
  for (std::byte& pair : bytes) pair = pair << 4 | pair >> 4;
  element_type type = n.type(0).type;
  value index = b.constant(literal(shape{element_type::u4, {count}}, std::move(bytes)));
  std::span<const double> table = kind == 0 ? std::span(fp4_values) : std::span(nf4_values);
  value values = b.constant(literal::from_doubles({type, {16}}, std::vector<double>(table.begin(), table.end())));
  value elements = b.add(gather{0}, {values, b.to_type(index, element_type::i64)});
  value scales =
      repeated_blocks(b, b.to_type(b.with_dims(n.in(2), {(count + block - 1) / block}), type), 0, block, count);
  value weights = b.with_dims(b.binary(fn::mul, elements, scales), {rows, depth});
  return {n.integer("transB", 1) ? times_transposed(n, weights, depth, {}) : matmul(b, n.in(0), weights, type)};
}

// inputs: X, W, bias.
std::vector<value> gemm_fast_gelu(node& n) {
  builder& b = n.b;
  element_type type = n.type(0).type, wide = compute_type(type);
  value product = b.to_type(matmul(b, n.in(0), n.in(1), type), wide);
  if (n.has(2)) product = b.binary(fn::add, product, b.to_type(n.in(2), wide));
  return {b.to_type(tanh_gelu(b, product), type)};
}

constexpr operator_row rows[] = {
    {"FusedMatMul", fused_matmul, 1, "", microsoft_domain},
    {"TransposeMatMul", fused_matmul, 1, "", microsoft_domain},
    {"MatMulNBits", matmul_n_bits, 1,
     "constant weights of 2, 4 or 8 bits, no g_idx; with accuracy_level 4, CPUs may round A to 8 bits",
     microsoft_domain},
    {"MatMulBnb4", matmul_bnb4, 1, "constant weights", microsoft_domain},
    {"GemmFastGelu", gemm_fast_gelu, 1, "", microsoft_domain},
};

}  // namespace

std::span<const operator_row> contrib_matmul_operators() { return rows; }

}  // namespace kiln::onnx_import
