// Det: Gaussian elimination with partial pivoting. Each step eliminates one column of all matrices in the batch.
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/window.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;
constexpr std::int64_t most_columns = 64;

// Returns the first column of matrices [batch, rows, columns] as [batch, rows].
value first_column(builder& b, value matrices) {
  const auto& dims = matrices.type().dims;
  return b.with_dims(b.slice_axis(matrices, 2, 0, 1), {dims.at(0), dims.at(1)});
}

std::vector<value> determinant(node& n) {
  builder& b = n.b;
  const element_type type = n.type(0).type, wide = compute_type(type);
  const auto dims = n.dims(0);
  if (dims.size() < 2) invalid("needs square matrices, not " + n.type(0).str());
  b.need_equal(dims.at(dims.size() - 1), dims.at(dims.size() - 2), "needs square matrices, not " + n.type(0).str());
  const std::int64_t size = static_dim(dims.back(), "the size of a matrix");
  if (size > most_columns)
    refuse("matrices of " + std::to_string(size) + " columns; at most " + std::to_string(most_columns) +
           " are supported");
  const std::vector<dim> outer(dims.begin(), dims.end() - 2);
  dim batch = 1;
  for (const dim& d : outer) batch = batch * d;
  value rest = b.to_type(b.with_dims(n.in(0), {batch, size, size}), wide);
  value product = b.broadcast_to(b.scalar(wide, 1), {batch});
  for (std::int64_t left = size; left > 0; --left) {
    // Swap the row whose first element has the largest magnitude to the top.
    value chosen = b.add(arg_reduce{true, 1, false, false}, {b.unary(fn::abs, first_column(b, rest))});
    value pivot_row = b.add(gather_nd{1}, {rest, b.with_dims(chosen, {batch, 1})});
    value pivot = b.with_dims(b.slice_axis(pivot_row, 1, 0, 1), {batch});
    value sign = b.where(b.binary(fn::equal, chosen, 0.0), b.scalar(wide, 1), b.scalar(wide, -1));
    product = b.binary(fn::mul, product, b.binary(fn::mul, pivot, sign));
    if (left == 1) break;
    value top = b.slice_axis(rest, 1, 0, 1), below = b.slice_axis(rest, 1, 1, left - 1);
    value row = b.binary(fn::add, b.iota_like(element_type::i64, {left - 1, 1}, 0), 1.0);
    below = b.where(b.binary(fn::equal, row, b.with_dims(chosen, {batch, 1, 1})), top, below);
    // If the column is all zeros, the pivot is 0 and so is the determinant. Divide by 1 then; nothing is subtracted.
    value divisor = b.where(b.binary(fn::equal, pivot, 0.0), b.scalar(wide, 1), pivot);
    value factors = b.binary(fn::div, b.slice_axis(below, 2, 0, 1), b.with_dims(divisor, {batch, 1, 1}));
    value others = b.with_dims(b.slice_axis(pivot_row, 1, 1, left - 1), {batch, 1, left - 1});
    rest = b.binary(fn::sub, b.slice_axis(below, 2, 1, left - 1), b.binary(fn::mul, factors, others));
  }
  return {b.to_type(b.with_dims(product, outer), type)};
}

constexpr operator_row rows[] = {{"Det", determinant, 11, "matrices of up to 64 columns"}};

}  // namespace

std::span<const operator_row> determinant_operators() { return rows; }

}  // namespace kiln::onnx_import
