// Tensor operators from onnxruntime's domain that the standard does not have: lookups in quantized tables, crops of
// images, the inverse of matrices, products of complex numbers, distances of rows.
#include "aot/onnx/graph.hpp"
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"
#include "aot/onnx/ops/packed_weights.hpp"
#include "aot/onnx/ops/text_choice.hpp"
#include "aot/onnx/ops/window.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// A table of integers with one scale and one zero point per block along an axis. `zero` may be empty.
struct blocked_table {
  value elements, scales, zeros;
};

blocked_table table_of(node& n) {
  blocked_table table{n.in(0), n.in(2), n.has(3) ? n.in(3) : value{}};
  if (n.type(0).type != element_type::u8) {
    if (!is_integer(n.type(0).type)) refuse("a table of " + n.type(0).str() + " is not supported, only of integers");
    return table;
  }
  std::int64_t bits = checked_bits(n.integer("bits", 4));
  auto unpacked = [&](std::size_t i, std::string_view what) {
    if (!n.type(i).is_static()) invalid("the table must have static dims, not " + n.type(i).str());
    auto dims = n.dims(i);
    dims.back() = dims.back().value() * 8 / bits;
    return packed_elements(n, i, what, dims, bits);
  };
  table.elements = unpacked(0, "data");
  if (table.zeros) {
    const auto dims = n.dims(2);
    std::int64_t blocks = static_dim(dims.back(), "scales"),
                 rows = n.type(2).element_count() / std::max<std::int64_t>(1, blocks);
    table.zeros = packed_numbers(n, 3, "zero_points", rows, blocks, bits, element_type::f32, dims);
  } else {
    table.zeros = n.b.scalar(element_type::f32, static_cast<double>(1 << (bits - 1)));
  }
  return table;
}

// inputs: data, indices, scales, zero points. An index out of range gives zeros.
std::vector<value> gather_block_quantized(node& n) {
  builder& b = n.b;
  blocked_table table = table_of(n);
  const auto dims = table.elements.type().dims;
  if (!table.elements.type().is_static()) refuse("the table must have static dims");
  auto along = n.axis("gather_axis", 0, dims.size()), axis = n.axis("quantize_axis", 1, dims.size());
  std::int64_t block = n.integer("block_size", 128), length = dims.at(static_cast<std::size_t>(axis)).value(),
               rows = dims.at(static_cast<std::size_t>(along)).value();
  if (block < 1 || table.scales.type().rank() != dims.size())
    invalid("scales " + n.type(2).str() + " do not fit a table of rank " + std::to_string(dims.size()) +
            " in blocks of " + std::to_string(block));
  value index = b.to_type(n.in(1), element_type::i64);
  index = b.where(b.binary(fn::less, index, 0.0), b.binary(fn::add, index, static_cast<double>(rows)), index);
  value inside = b.binary(fn::logical_and, b.binary(fn::greater_equal, index, 0.0),
                          b.binary(fn::less, index, static_cast<double>(rows)));
  value safe = b.where(inside, index, b.scalar(element_type::i64, 0));
  // Gather first: few elements are looked up, so dequantizing only these is cheaper. The block axis moves with the
  // gather.
  auto picked = [&](value v) { return b.to_type(b.add(gather{along}, {v, safe}), element_type::f32); };
  auto spread = [&](value v) {
    if (v.type().rank() == 0) return v;
    if (along == axis) return picked(repeated_blocks(b, v, axis, block, length));
    auto moved = axis > along ? axis + static_cast<std::int64_t>(index.type().rank()) - 1 : axis;
    return repeated_blocks(b, picked(v), moved, block, length);
  };
  value result = picked(table.elements);
  if (table.zeros) result = b.binary(fn::sub, result, spread(table.zeros));
  result = b.binary(fn::mul, result, spread(table.scales));
  std::vector<dim> lifted(result.type().rank(), 1);
  for (std::size_t i = 0; i < index.type().rank(); ++i)
    lifted[static_cast<std::size_t>(along) + i] = index.type().dims.at(i);
  result = b.where(b.with_dims(inside, lifted), result, b.scalar(element_type::f32, 0));
  return {b.to_type(result, n.type(2).type)};
}

// Returns the coordinates of `count` samples between the edges `low` and `high` [R, 1], which are fractions of the
// axis. The result is f32[R, count].
value sample_positions(builder& b, value low, value high, std::int64_t count, std::int64_t size) {
  auto last = static_cast<double>(size - 1);
  if (count == 1) return b.binary(fn::mul, b.binary(fn::add, low, high), last / 2);
  value step = b.binary(fn::mul, b.binary(fn::sub, high, low), last / static_cast<double>(count - 1));
  return b.binary(fn::add, b.binary(fn::mul, low, last),
                  b.binary(fn::mul, b.iota_like(element_type::f32, {1, count}, 1), step));
}

// inputs: images [N, C, H, W]; boxes [R, 4] with y1, x1, y2, x2 as fractions of the image; the image index of each box;
// the size of the crops.
std::vector<value> crop_and_resize(node& n) {
  builder& b = n.b;
  const auto dims = n.dims(0);
  auto size = n.numbers(3, "crop_size");
  if (dims.size() != 4 || n.rank(1) != 2 || size.size() != 2 || size[0] < 1 || size[1] < 1)
    invalid("images " + n.type(0).str() + ", boxes " + n.type(1).str() + " and crop_size do not fit");
  std::string mode = one_of(n, "mode", "bilinear", {"bilinear", "nearest"});
  std::int64_t height = static_dim(dims.at(2), "crops of an image"),
               width = static_dim(dims.at(3), "crops of an image");
  const dim boxes = n.dims(1)[0];
  element_type type = n.type(0).type;
  value corners = b.to_type(n.in(1), element_type::f32);
  auto corner = [&](std::int64_t i) { return b.slice_axis(corners, 1, i, 1); };
  value y = b.with_dims(sample_positions(b, corner(0), corner(2), size[0], height), {boxes, size[0], 1});
  value x = b.with_dims(sample_positions(b, corner(1), corner(3), size[1], width), {boxes, 1, size[1]});
  auto within = [&](value at, std::int64_t extent) {
    return b.binary(fn::logical_and, b.binary(fn::greater_equal, at, 0.0),
                    b.binary(fn::less_equal, at, static_cast<double>(extent - 1)));
  };
  value inside = b.binary(fn::logical_and, within(y, height), within(x, width));
  value pixels = b.with_dims(b.permuted(n.in(0), {0, 2, 3, 1}), {dims.at(0) * dims.at(2) * dims.at(3), dims.at(1)});
  value image = b.with_dims(b.to_type(n.in(2), element_type::i64), {boxes, 1, 1});
  auto at = [&](value row, value column) {
    auto clamped = [&](value v, std::int64_t extent) {
      return b.to_type(b.binary(fn::min, b.binary(fn::max, v, 0.0), static_cast<double>(extent - 1)),
                       element_type::i64);
    };
    value place = b.binary(fn::add, b.binary(fn::mul, image, static_cast<double>(height)), clamped(row, height));
    place = b.binary(fn::add, b.binary(fn::mul, place, static_cast<double>(width)), clamped(column, width));
    return b.to_type(b.add(gather{0}, {pixels, place}), element_type::f32);  // [R, h, w, C]
  };
  auto lifted = [&](value v) {
    auto apart = v.type().dims;
    apart.emplace_back(1);
    return b.with_dims(v, apart);
  };
  value crop;
  if (mode == "nearest") {
    auto rounded = [&](value v) { return b.unary(fn::floor, b.binary(fn::add, v, 0.5)); };
    crop = at(rounded(y), rounded(x));
  } else {
    value top = b.unary(fn::floor, y), left = b.unary(fn::floor, x), below = b.unary(fn::ceil, y),
          right = b.unary(fn::ceil, x);
    value down = lifted(b.binary(fn::sub, y, top)), across = lifted(b.binary(fn::sub, x, left));
    auto mixed = [&](value from, value to, value part) {
      return b.binary(fn::add, from, b.binary(fn::mul, b.binary(fn::sub, to, from), part));
    };
    crop = mixed(mixed(at(top, left), at(top, right), across), mixed(at(below, left), at(below, right), across), down);
  }
  crop = b.where(lifted(inside), crop, b.scalar(element_type::f32, n.real("extrapolation_value", 0)));
  return {b.to_type(b.permuted(crop, {0, 3, 1, 2}), type)};
}

// One step of Gauss-Jordan elimination with partial pivoting on [batch, size, columns]. Afterwards column `step` equals
// that of the identity.
value eliminated_step(builder& b, value rows, value step) {
  const auto dims = rows.type().dims;
  const dim batch = dims.at(0), size = dims.at(1);
  // Swap row `step` with the row at or below it whose element in column `step` has the largest magnitude.
  value row = b.iota_like(element_type::i64, {1, size}, 1);
  value column = b.with_dims(b.add(gather{2}, {rows, step}), {batch, size});
  value candidates =
      b.where(b.binary(fn::greater_equal, row, step), b.unary(fn::abs, column), b.scalar(rows.type().type, -1));
  value pivot = b.add(arg_reduce{true, 1, true, false}, {candidates});
  value from = b.where(b.binary(fn::equal, row, step), pivot, b.where(b.binary(fn::equal, row, pivot), step, row));
  value swapped = b.add(gather_elements{1}, {rows, b.broadcast_to(b.with_dims(from, {batch, size, 1}), dims)});
  // Divide the pivot row by its pivot, and subtract multiples of it from all other rows.
  value own = b.with_dims(b.add(gather{1}, {swapped, step}), {batch, 1, dims.at(2)});
  value factors = b.with_dims(b.add(gather{2}, {swapped, step}), {batch, size, 1});
  value unit = b.binary(fn::div, own, b.with_dims(b.add(gather{2}, {own, step}), {batch, 1, 1}));
  value rest = b.binary(fn::sub, swapped, b.binary(fn::mul, factors, unit));
  value is_own = b.with_dims(b.binary(fn::equal, row, step), {1, size, 1});
  return b.where(is_own, b.broadcast_to(unit, dims), rest);
}

// Solves A X = B for A [batch, size, size] and B [batch, size, columns] with a loop over the columns of [A | B].
value solved(node& n, value a, value right) {
  builder& b = n.b;
  const dim size = a.type().dims.at(1);
  if (!size.is_static()) refuse("the size of the matrices must be known; fix '" + size.str() + "' with --dim");
  b.need_equal(a.type().dims.at(2), size, "only square matrices have an inverse");
  value start = b.add(concat{2}, {a, right});
  auto& state = n.owner.state();
  module& body = state.result.add_module("elimination_" + std::to_string(state.bodies++));
  builder inner(body, b.knowledge(), state.budget);
  value step = body.add_parameter("iteration", {element_type::i64, {}});
  value go_on = body.add_parameter("condition", {element_type::boolean, {}});
  value rows = body.add_parameter("rows", start.type());
  body.set_outputs({go_on, eliminated_step(inner, rows, step)}, {"0", "1"});
  value trips = b.constant(literal::of<std::int64_t>({element_type::i64, {}}, {size.value()}));
  value done = b.add(loop{1, -1}, {trips, b.scalar(element_type::boolean, 1), start}, {&body});
  return b.slice_axis(done, 2, size.value(), right.type().dims.at(2));
}

// Returns an input of matrices as [batch, rows, columns] in the compute type.
value batched_matrices(node& n, std::size_t i) {
  const auto dims = n.dims(i);
  if (dims.size() < 2) invalid("needs matrices, not " + n.type(i).str());
  dim batch = 1;
  for (std::size_t k = 0; k + 2 < dims.size(); ++k) batch = batch * dims.at(k);
  return n.b.with_dims(n.b.to_type(n.in(i), compute_type(n.type(i).type)),
                       {batch, dims.at(dims.size() - 2), dims.back()});
}

std::vector<value> inverse(node& n) {
  builder& b = n.b;
  value a = batched_matrices(n, 0);
  const auto dims = a.type().dims;
  value diagonal =
      b.binary(fn::equal, b.iota_like(element_type::i64, dims, 1), b.iota_like(element_type::i64, dims, 2));
  return {b.with_dims(b.to_type(solved(n, a, b.to_type(diagonal, a.type().type)), n.type(0).type), n.dims(0))};
}

// Complex multiplication; the last axis holds (real, imaginary) pairs. With Conjugate, the second factor is conjugated.
template <bool Conjugate>
std::vector<value> complex_product(node& n) {
  builder& b = n.b;
  auto part = [&](std::size_t i, std::int64_t which) {
    if (n.rank(i) == 0 || !(n.dims(i).back() == dim(2))) invalid("complex numbers are pairs, not " + n.type(i).str());
    return b.slice_axis(n.in(i), static_cast<std::int64_t>(n.rank(i)) - 1, which, 1);
  };
  value ar = part(0, 0), ai = part(0, 1), br = part(1, 0), bi = part(1, 1);
  if (Conjugate) bi = b.unary(fn::neg, bi);
  value real = b.binary(fn::sub, b.binary(fn::mul, ar, br), b.binary(fn::mul, ai, bi));
  value imaginary = b.binary(fn::add, b.binary(fn::mul, ar, bi), b.binary(fn::mul, ai, br));
  return {b.add(concat{static_cast<std::int64_t>(real.type().rank()) - 1}, {real, imaginary})};
}

// Distances between the rows of two matrices, [m, n]. Differences are squared and summed: for rows that are nearly
// equal this is more precise than the product of the matrices.
std::vector<value> row_distances(node& n) {
  builder& b = n.b;
  const std::string metric = n.text("metric", "sqeuclidean");
  if (metric != "sqeuclidean" && metric != "euclidean") refuse("the distance '" + metric + "' is not supported");
  if (n.rank(0) != 2 || n.rank(1) != 2)
    invalid("rows of " + n.type(0).str() + " and " + n.type(1).str() + ": both must be matrices");
  b.need_equal(n.dims(0)[1], n.dims(1)[1], "rows of both matrices");
  const auto left = n.dims(0), right = n.dims(1);
  value apart =
      b.binary(fn::sub, b.with_dims(n.in(0), {left[0], 1, left[1]}), b.with_dims(n.in(1), {1, right[0], right[1]}));
  value sum = b.reduced(reduction_kind::sum, b.binary(fn::mul, apart, apart), {2}, false);
  return {metric == "euclidean" ? b.unary(fn::sqrt, sum) : sum};
}

constexpr operator_row rows[] = {
    {"CDist", row_distances, 1, "euclidean", microsoft_domain},
    {"GatherBlockQuantized", gather_block_quantized, 1, "integer tables", microsoft_domain},
    {"CropAndResize", crop_and_resize, 1, "crop_size known at import", microsoft_domain},
    {"Inverse", inverse, 1, "static sizes", microsoft_domain},
    {"ComplexMul", complex_product<false>, 1, "", microsoft_domain},
    {"ComplexMulConj", complex_product<true>, 1, "", microsoft_domain},
};

}  // namespace

std::span<const operator_row> contrib_tensor_operators() { return rows; }

}  // namespace kiln::onnx_import
