// Matrix products.
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"
#include "aot/onnx/ops/window.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

dim product(const std::vector<dim>& dims, std::size_t count) {
  dim result = 1;
  for (std::size_t i = 0; i < count; ++i) result = result * dims.at(i);
  return result;
}

}  // namespace

// numpy.matmul. If y is a single matrix, the batch of x becomes rows: one product instead of a batch of products.
value matmul(builder& b, value x, value y, element_type type) {
  if (x.type().rank() == 0 || y.type().rank() == 0) invalid("scalars have no matrix product");
  bool vector_x = x.type().rank() == 1, vector_y = y.type().rank() == 1;
  if (vector_x) x = b.with_dims(x, {1, x.type().dims.at(0)});
  if (vector_y) y = b.with_dims(y, {y.type().dims.at(0), 1});
  auto a = x.type().dims, c = y.type().dims;
  b.need_equal(a.back(), c[c.size() - 2], "cannot multiply " + x.type().str() + " by " + y.type().str());
  std::vector<dim> batch_a(a.begin(), a.end() - 2), batch_c(c.begin(), c.end() - 2),
      batch = b.broadcast_shape(batch_a, batch_c);
  std::vector<dim> result = batch;
  value made;
  if (c.size() == 2 && a.size() > 2) {
    dim rows = product(a, a.size() - 2);
    // With only leading 1s the product keeps its rank, so that no reshape follows.
    if (rows == dim(1)) {
      auto lifted = c;
      lifted.insert(lifted.begin(), a.size() - 2, 1);
      made = b.add(dot{false, false, type}, {x, b.with_dims(y, lifted)});
    } else {
      made = b.add(dot{false, false, type}, {b.with_dims(x, {rows * a[a.size() - 2], a.back()}), y});
    }
  } else {
    auto stretched = [&](value v, const std::vector<dim>& dims) {
      auto full = batch;
      full.insert(full.end(), dims.end() - 2, dims.end());
      return b.broadcast_to(v, full);
    };
    made = b.add(dot{false, false, type}, {stretched(x, a), stretched(y, c)});
  }
  if (!vector_x) result.push_back(a[a.size() - 2]);
  if (!vector_y) result.push_back(c.back());
  return b.with_dims(made, result);
}

namespace {

std::vector<value> matmul(node& n) {
  if (n.type(0).type != n.type(1).type)
    invalid("the operands have different types: " + n.type(0).str() + " and " + n.type(1).str());
  return {matmul(n.b, n.in(0), n.in(1), n.type(0).type)};
}

// alpha * A' * B' + beta * C. Integers are scaled as f64, because alpha and beta are real; the result is truncated.
std::vector<value> gemm(node& n) {
  if (n.rank(0) != 2 || n.rank(1) != 2)
    invalid("A and B must be matrices, not " + n.type(0).str() + " and " + n.type(1).str());
  double alpha = n.real("alpha", 1), beta = n.real("beta", 1);
  value result =
      n.b.add(dot{n.integer("transA", 0) != 0, n.integer("transB", 0) != 0, n.type(0).type}, {n.in(0), n.in(1)});
  const element_type type = result.type().type;
  const element_type scaled = is_float(type) || (alpha == 1 && beta == 1) ? type : element_type::f64;
  result = n.b.to_type(result, scaled);
  if (alpha != 1) result = n.b.binary(fn::mul, result, alpha);
  if (!n.has(2) || beta == 0) return {n.b.to_type(result, type)};
  value c = n.b.to_type(n.in(2), scaled);
  if (beta != 1) c = n.b.binary(fn::mul, c, beta);
  return {n.b.to_type(n.b.add(elementwise{fn::add}, {result, n.b.broadcast_to(c, result.type().dims)}), type)};
}

// Returns x - zero point in i32. A zero point per row (of a) or per column (of b) is a vector along that axis.
value centered(node& n, std::size_t i, std::size_t zero_point, bool per_row) {
  value x = n.b.to_type(n.in(i), element_type::i32);
  if (!n.has(zero_point)) return x;
  value z = n.b.to_type(n.in(zero_point), element_type::i32);
  std::size_t rank = x.type().rank();
  if (z.type().elements() == dim(1)) z = n.b.with_dims(z, {});
  else if (z.type().rank() == 1 && rank >= 2)
    z = n.b.along_axis(z, static_cast<std::int64_t>(rank) - (per_row ? 2 : 1), rank);
  return n.b.binary(fn::sub, x, z);
}

std::vector<value> matmul_integer(node& n) {
  bool plain = !n.has(2) && !n.has(3) && n.type(0).type == element_type::i8 && n.type(1).type == element_type::i8;
  if (plain) return {matmul(n.b, n.in(0), n.in(1), element_type::i32)};
  return {matmul(n.b, centered(n, 0, 2, true), centered(n, 1, 3, false), element_type::i32)};
}

// inputs: a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero. a may have a scale for each row, b one for each
// column.
std::vector<value> qlinear_matmul(node& n) {
  builder& b = n.b;
  value sum = matmul(b, centered(n, 0, 2, true), centered(n, 3, 5, false), element_type::i32);
  const std::size_t rank = sum.type().rank();
  auto scale_of = [&](std::size_t i, std::size_t axis_from_end) {
    value scale = b.to_type(n.in(i), element_type::f32);
    if (scale.type().elements() == dim(1)) return b.with_dims(scale, {});
    if (axis_from_end == 0 || scale.type().rank() != 1 || rank < 2)
      refuse("scales " + scale.type().str() + " of input " + std::to_string(i) + " are not supported");
    return b.along_axis(scale, static_cast<std::int64_t>(rank - axis_from_end), rank);
  };
  value scale = b.binary(fn::div, b.binary(fn::mul, scale_of(1, 2), scale_of(4, 1)), scale_of(6, 0));
  return {quantized(b, b.binary(fn::mul, b.to_type(sum, element_type::f32), scale), b.with_dims(n.in(7), {}))};
}

std::vector<value> fused_gemm(node& n) { return {activated(n, gemm(n)[0])}; }

constexpr operator_row rows[] = {
    {"FusedGemm", fused_gemm, 1, "", microsoft_domain},
    {"MatMul", matmul, 1},
    {"Gemm", gemm},
    {"MatMulInteger", matmul_integer, 10},
    {"QLinearMatMul", qlinear_matmul, 10, "scales per tensor, row of a or column of b"},
};

}  // namespace

std::span<const operator_row> matmul_operators() { return rows; }

}  // namespace kiln::onnx_import
