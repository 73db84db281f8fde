#include "ir/ops/movement.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "ir/ops/check.hpp"

namespace kiln {
namespace {

using detail::input_check;

// True if `length` is static and `index` is not within [0, length).
bool outside(std::int64_t index, const dim& length) {
  return index < 0 || (length.is_static() && index >= length.value());
}

}  // namespace

std::vector<shape> broadcast::infer(std::span<const shape> inputs) const {
  input_check check(name(), inputs);
  check.arity(1);
  const auto& in = inputs[0].dims;
  shape out{inputs[0].type, dims};
  if (in.size() > dims.size()) check.reject("does not stretch to " + out.str());
  for (std::size_t i = 0; i < in.size(); ++i)
    if (!(in[i] == dim(1))) check.equal(in[i], dims[dims.size() - in.size() + i], "does not stretch to " + out.str());
  return {check.result(out)};
}

std::vector<shape> reshape::infer(std::span<const shape> inputs) const {
  input_check check(name(), inputs);
  check.arity(1);
  shape out{inputs[0].type, dims};
  // Sizes that differ as expressions may still be equal for the actual symbols. They are checked again when the symbols
  // are bound.
  if (dim difference = out.elements() - inputs[0].elements(); difference.is_static() && !(difference == dim(0)))
    check.reject("does not have the elements of " + out.str());
  return {check.result(out)};
}

std::vector<shape> transpose::infer(std::span<const shape> inputs) const {
  input_check check(name(), inputs);
  check.arity(1);
  auto sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  bool valid = sorted.size() == inputs[0].rank();
  for (std::size_t i = 0; valid && i < sorted.size(); ++i) valid = sorted[i] == static_cast<std::int64_t>(i);
  if (!valid) check.reject(fmt::format("[{}] is no permutation of its axes", fmt::join(permutation, ", ")));
  shape out{inputs[0].type, {}};
  for (std::int64_t axis : permutation) out.dims.push_back(inputs[0].dims[static_cast<std::size_t>(axis)]);
  return {out};
}

std::vector<shape> slice::infer(std::span<const shape> inputs) const {
  input_check check(name(), inputs);
  check.arity(1);
  const auto& in = inputs[0].dims;
  check.that(starts.size() == in.size() && lengths.size() == in.size() && steps.size() == in.size(),
             "needs one start, length and step per axis");
  for (std::size_t i = 0; i < in.size(); ++i) {
    check.that(steps[i] != 0, "steps must not be zero");
    if (!lengths[i].is_static() || lengths[i].value() <= 0) continue;
    std::int64_t last = 0;  // a wrapped product could land inside the axis
    bool absurd = __builtin_mul_overflow(lengths[i].value() - 1, steps[i], &last) ||
                  __builtin_add_overflow(starts[i], last, &last);
    if (absurd)
      check.reject(fmt::format("{} elements from {} in steps of {} do not lie in axis {}", lengths[i].value(),
                               starts[i], steps[i], i));
    if (outside(starts[i], in[i]) || outside(last, in[i]))
      check.reject(fmt::format("elements {} to {} of axis {} do not exist", starts[i], last, i));
  }
  return {check.result({inputs[0].type, lengths})};
}

std::vector<shape> pad::infer(std::span<const shape> inputs) const {
  input_check check(name(), inputs);
  check.arity(1);
  const auto& in = inputs[0].dims;
  check.that(before.size() == in.size() && after.size() == in.size(), "needs one pad per axis and side");
  shape out = inputs[0];
  for (std::size_t i = 0; i < in.size(); ++i) {
    for (std::int64_t number : {before[i], after[i]}) check.extent(number, "pads");
    if (before[i] + after[i] == 0) continue;
    check.that(mode == pad_mode::constant_ || !(in[i] == dim(0)), "an empty axis has nothing to pad with");
    out.dims[i] = in[i] + dim(before[i] + after[i]);
  }
  return {out};
}

std::vector<shape> concat::infer(std::span<const shape> inputs) const {
  input_check check(name(), inputs);
  check.that(!inputs.empty(), "needs at least one input");
  auto along = static_cast<std::size_t>(check.axis(axis, inputs[0].rank()));
  shape out = inputs[0];
  for (const shape& input : inputs.subspan(1)) {
    check.that(input.type == out.type, "inputs differ in element type");
    check.that(input.rank() == out.rank(), "inputs differ in rank");
    for (std::size_t i = 0; i < out.rank(); ++i)
      if (i != along) check.equal(out.dims[i], input.dims[i], fmt::format("inputs differ along axis {}", i));
    out.dims[along] = out.dims[along] + input.dims[along];
  }
  return {out};
}

namespace {

// An empty axis has no valid index, and indices are clamped to the valid ones.
void check_source(const input_check& check, const dim& source, const shape& indices) {
  bool some = indices.is_static() && indices.element_count() > 0;
  check.that(!some || !(source == dim(0)), "an empty axis has nothing to gather or to write");
}

}  // namespace

std::vector<shape> gather::infer(std::span<const shape> inputs) const {
  input_check check(name(), inputs);
  check.arity(2);
  check.index_type(inputs[1]);
  const auto& data = inputs[0].dims;
  auto along = check.axis(axis, data.size());
  check_source(check, data[static_cast<std::size_t>(along)], inputs[1]);
  shape out{inputs[0].type, {data.begin(), data.begin() + along}};
  out.dims.insert(out.dims.end(), inputs[1].dims.begin(), inputs[1].dims.end());
  out.dims.insert(out.dims.end(), data.begin() + along + 1, data.end());
  return {out};
}

namespace {

// Checks data and indices of GatherElements and ScatterElements: the indices must not be longer than data along the
// other axes.
void check_element_indices(const input_check& check, std::span<const shape> inputs, std::int64_t axis) {
  const auto& data = inputs[0].dims;
  const auto& indices = inputs[1].dims;
  check.index_type(inputs[1]);
  check.that(data.size() == indices.size(), "data and indices differ in rank");
  auto along = static_cast<std::size_t>(check.axis(axis, data.size()));
  for (std::size_t i = 0; i < data.size(); ++i)
    if (i != along && data[i].is_static() && indices[i].is_static() && indices[i].value() > data[i].value())
      check.reject(fmt::format("indices are longer than data along axis {}", i));
}

// Length of an index tuple of GatherND and ScatterND.
std::size_t tuple_length(const input_check& check, std::span<const shape> inputs, std::size_t batch_dims) {
  check.index_type(inputs[1]);
  const auto& indices = inputs[1].dims;
  check.that(!indices.empty() && indices.back().is_static(), "the last dimension of the indices must be static");
  auto length = indices.back().value();
  check.that(length >= 0 && batch_dims + static_cast<std::size_t>(length) <= inputs[0].rank(),
             "index tuples are longer than the rank of data");
  return static_cast<std::size_t>(length);
}

}  // namespace

std::vector<shape> gather_elements::infer(std::span<const shape> inputs) const {
  input_check check(name(), inputs);
  check.arity(2);
  check_element_indices(check, inputs, axis);
  check_source(check, inputs[0].dims[static_cast<std::size_t>(check.axis(axis, inputs[0].rank()))], inputs[1]);
  return {inputs[1].with_type(inputs[0].type)};
}

std::vector<shape> gather_nd::infer(std::span<const shape> inputs) const {
  input_check check(name(), inputs);
  check.arity(2);
  const auto& data = inputs[0].dims;
  const auto& indices = inputs[1].dims;
  check.that(batch_dims >= 0 && batch_dims < static_cast<std::int64_t>(std::min(data.size(), indices.size())),
             "batch_dims is out of range");
  auto length = static_cast<std::ptrdiff_t>(tuple_length(check, inputs, static_cast<std::size_t>(batch_dims)));
  check.dims_equal({data.begin(), data.begin() + batch_dims}, {indices.begin(), indices.begin() + batch_dims},
                   "batch dimensions differ");
  for (std::ptrdiff_t i = 0; i < length; ++i)
    check_source(check, data[static_cast<std::size_t>(batch_dims + i)], inputs[1]);
  shape out{inputs[0].type, {indices.begin(), indices.end() - 1}};
  out.dims.insert(out.dims.end(), data.begin() + batch_dims + length, data.end());
  return {out};
}

std::vector<shape> scatter_elements::infer(std::span<const shape> inputs) const {
  input_check check(name(), inputs);
  check.arity(3);
  check_element_indices(check, inputs, axis);
  check_source(check, inputs[0].dims[static_cast<std::size_t>(check.axis(axis, inputs[0].rank()))], inputs[1]);
  check.that(inputs[2].type == inputs[0].type, "updates and data differ in element type");
  check.dims_equal(inputs[2].dims, inputs[1].dims, "updates and indices differ");
  if (reduction != scatter_reduction::none) check.numeric(inputs[0]);
  return {inputs[0]};
}

std::vector<shape> scatter_nd::infer(std::span<const shape> inputs) const {
  input_check check(name(), inputs);
  check.arity(3);
  auto length = static_cast<std::ptrdiff_t>(tuple_length(check, inputs, 0));
  for (std::ptrdiff_t i = 0; i < length; ++i)
    check_source(check, inputs[0].dims[static_cast<std::size_t>(i)], inputs[1]);
  check.that(inputs[2].type == inputs[0].type, "updates and data differ in element type");
  std::vector<dim> updates(inputs[1].dims.begin(), inputs[1].dims.end() - 1);
  updates.insert(updates.end(), inputs[0].dims.begin() + length, inputs[0].dims.end());
  check.dims_equal(inputs[2].dims, updates, "updates do not match indices and data");
  if (reduction != scatter_reduction::none) check.numeric(inputs[0]);
  return {inputs[0]};
}

std::vector<shape> iota::infer(std::span<const shape> inputs) const {
  input_check check(name(), inputs);
  check.arity(0);
  shape out{type, dims};
  check.axis(axis, dims.size());
  check.numeric(out);
  return {check.result(out)};
}

std::vector<shape> resize::infer(std::span<const shape> inputs) const {
  input_check check(name(), inputs);
  check.arity(1);
  check.numeric(inputs[0]);
  check.that(dims.size() == inputs[0].rank() && scales.size() == inputs[0].rank(),
             "needs one dimension and scale per axis");
  check.that(std::all_of(scales.begin(), scales.end(), [](double s) { return s >= 0; }), "scales must not be negative");
  for (std::size_t i = 0; i < dims.size(); ++i)
    check.that(!(inputs[0].dims[i] == dim(0)) || dims[i] == dim(0), "an empty axis cannot grow");
  return {check.result({inputs[0].type, dims})};
}

}  // namespace kiln
