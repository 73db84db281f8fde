// The builder's operations that move elements: permutations, slices, pads.
#include <algorithm>
#include <numeric>

#include "aot/onnx/bounded_values.hpp"
#include "aot/onnx/builder.hpp"
#include "ir/error.hpp"

namespace kiln::onnx_import {

value builder::permuted(value x, const std::vector<std::int64_t>& permutation) {
  std::vector<std::int64_t> identity(permutation.size());
  std::iota(identity.begin(), identity.end(), 0);
  return permutation == identity ? x : add(transpose{permutation}, {x});
}

value builder::slice_axis(value x, std::int64_t axis, std::int64_t start, dim length) {
  const auto& dims = x.type().dims;
  if (axis < 0 || static_cast<std::size_t>(axis) >= dims.size())
    throw error(error_kind::invalid_model,
                "a tensor of type " + x.type().str() + " has no axis " + std::to_string(axis));
  if (start == 0 && dims.at(static_cast<std::size_t>(axis)) == length) return x;
  slice op{std::vector<std::int64_t>(dims.size(), 0), dims, std::vector<std::int64_t>(dims.size(), 1)};
  op.starts[static_cast<std::size_t>(axis)] = start;
  op.lengths[static_cast<std::size_t>(axis)] = length;
  return add(std::move(op), {x});
}

value builder::slice_from(value x, std::int64_t axis, const dim& start, const dim& length, std::int64_t step) {
  auto at = static_cast<std::size_t>(axis);
  auto dims = x.type().dims;
  if (start.is_static()) {
    slice op{std::vector<std::int64_t>(dims.size(), 0), dims, std::vector<std::int64_t>(dims.size(), 1)};
    op.starts[at] = start.value();
    op.lengths[at] = length;
    op.steps[at] = step;
    return start == dim(0) && length == dims.at(at) && step == 1 ? x : add(std::move(op), {x});
  }
  // A start relative to the end may be a static number; gather accepts negative indices for this. Where nothing is
  // taken, the start may be -1.
  dim from_end = start - dims.at(at);
  value first = from_end.is_static() && !is_bounded(dims.at(at)) && from_end.value() < 0
                    ? scalar(element_type::i64, static_cast<double>(from_end.value()))
                : facts().lower(start).value_or(0) < 0 ? data_of(start)
                                                       : dims_tensor({start}, 0);
  value index = binary(scalar_function::mul, iota_like(element_type::i64, {length}, 0), static_cast<double>(step));
  return add(gather{axis}, {x, binary(scalar_function::add, index, first)});
}

value builder::pad_axis(value x, std::int64_t axis, const dim& before, const dim& after, pad_mode mode, double fill) {
  auto at = static_cast<std::size_t>(axis);
  std::size_t rank = x.type().rank();
  dim size = x.type().dims.at(at), length = size + before + after;
  auto most = facts().upper(after);
  constexpr std::int64_t large = 1 << 16;
  if (!is_bounded(size) && before == dim(0) && (mode == pad_mode::constant_ || mode == pad_mode::edge) && most &&
      *most >= 0 && *most <= large) {
    pad op{std::vector<std::int64_t>(rank, 0), std::vector<std::int64_t>(rank, 0), mode, fill};
    op.after[at] = *most;
    return slice_axis(*most ? add(op, {x}) : x, axis, 0, length);
  }
  value last = dims_tensor({size - dim(1)}, 0);
  value position = binary(scalar_function::sub, iota_like(element_type::i64, {length}, 0), data_of(before));
  value inside =
      add(elementwise{scalar_function::clamp}, broadcast_together({position, scalar(element_type::i64, 0), last}));
  switch (mode) {
    case pad_mode::constant_: {
      value taken = add(gather{axis}, {x, inside});
      value same = binary(scalar_function::equal, position, inside);
      // An axis of bounded size may be empty and then has no last element.
      if (is_bounded(size))
        same = binary(scalar_function::logical_and, same, binary(scalar_function::greater_equal, position, 0.0));
      value is_inside = along_axis(same, axis, rank);
      return where(is_inside, taken, scalar(x.type().type, fill));
    }
    case pad_mode::edge: return add(gather{axis}, {x, inside});
    case pad_mode::wrap: return add(gather{axis}, {x, binary(scalar_function::mod, position, dims_tensor({size}, 0))});
    case pad_mode::reflect: break;
  }
  // The index goes forth and back with a period of 2 * (size - 1).
  value period = dims_tensor({size * dim(2) - dim(2)}, 0);
  value at_in_period = binary(scalar_function::mod, position, binary(scalar_function::max, period, 1.0));
  return add(gather{axis},
             {x, binary(scalar_function::min, at_in_period, binary(scalar_function::sub, period, at_in_period))});
}

value builder::reduced(reduction_kind kind, value x, std::vector<std::int64_t> axes, bool keep_dims) {
  std::sort(axes.begin(), axes.end());
  return axes.empty() ? x : add(reduce{kind, std::move(axes), keep_dims}, {x});
}

value builder::along_axis(value vector, std::int64_t axis, std::size_t rank) {
  std::vector<dim> dims(rank, 1);
  dims.at(static_cast<std::size_t>(axis)) = vector.type().elements();
  return with_dims(vector, dims);
}

}  // namespace kiln::onnx_import
