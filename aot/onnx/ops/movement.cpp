// Operators that move elements: transposes, joins, splits, pads.
#include <algorithm>

#include "aot/onnx/bounded_values.hpp"
#include "aot/onnx/graph.hpp"
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/slices.hpp"
#include "aot/onnx/ops/text_choice.hpp"

namespace kiln::onnx_import {
namespace {

std::vector<value> transposed(node& n) {
  auto rank = static_cast<std::int64_t>(n.rank(0));
  auto permutation = n.integers("perm");
  if (!permutation) {
    permutation.emplace();
    for (std::int64_t i = rank; i-- > 0;) permutation->push_back(i);
  }
  return {n.b.permuted(n.in(0), *permutation)};
}

std::vector<value> concatenated(node& n) {
  auto inputs = n.present();
  if (!n.has_attribute("axis")) invalid("attribute 'axis' is missing");
  auto axis = n.axis("axis", 0, inputs[0].type().rank());
  // Drop empty shape tensors, which are common in exported shape arithmetic.
  if (inputs.size() > 1)
    std::erase_if(inputs, [&](value v) {
      return v.type().rank() == 1 && v.type().dims.at(0) == dim(0) && v.type().type == inputs[0].type().type;
    });
  if (inputs.empty()) return {n.in(0)};
  return {inputs.size() == 1 ? inputs[0] : joined(n, inputs, axis)};
}

std::vector<value> split(node& n) {
  value x = n.in(0);
  auto axis = n.axis("axis", 0, x.type().rank());
  dim size = x.type().dims.at(static_cast<std::size_t>(axis));
  std::optional<known_elements> lengths;
  if (n.opset >= 13 && n.has(1)) lengths = n.known(1, "split");
  else if (auto listed = n.opset < 13 ? n.integers("split") : std::nullopt)
    lengths.emplace(listed->begin(), listed->end());
  std::vector<dim> parts;
  if (lengths) parts = *lengths;
  else {
    auto count = n.opset >= 18 && n.has_attribute("num_outputs") ? n.integer("num_outputs", 0)
                                                                 : static_cast<std::int64_t>(n.outputs());
    if (count < 1 || count > 1 << 20) invalid("cannot split into " + std::to_string(count) + " parts");
    // Equal parts; since opset 18 the last part may be smaller.
    if (size.is_static()) {
      std::int64_t part = size.value() / count + (size.value() % count != 0);
      if (n.opset < 18 && part * count != size.value())
        invalid("cannot split " + size.str() + " into " + std::to_string(count) + " equal parts");
      for (std::int64_t i = 0; i < count; ++i)
        parts.emplace_back(std::clamp<std::int64_t>(size.value() - i * part, 0, part));
    } else {
      const dim_facts& facts = n.b.facts();
      dim part = n.opset < 18 ? size / dim(count) : (size + dim(count - 1)) / dim(count);
      if (n.opset < 18)
        n.b.need_equal(part * dim(count), size,
                       "cannot split " + size.str() + " into " + std::to_string(count) + " equal parts");
      for (std::int64_t i = 0; i < count; ++i)
        parts.push_back(n.opset < 18 ? part : facts.min(part, facts.max(size - part * dim(i), 0)));
    }
  }
  // The parts of a symbolic axis add up to it by construction, though the sum of their dims does not show it. Therefore
  // only given lengths are checked.
  return lengths ? split_into(n, x, axis, parts) : parts_of(n.b, x, axis, parts);
}

value pad_axes(builder& b, value x, pad op, const known_elements& pads, const std::vector<std::int64_t>& axes) {
  bool grows = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    auto axis = static_cast<std::size_t>(normalize_axis(axes[i], x.type().rank()));
    if (!pads[i].is_static() || !pads[i + axes.size()].is_static() || is_bounded(x.type().dims.at(axis))) {
      x = b.pad_axis(x, static_cast<std::int64_t>(axis), pads[i], pads[i + axes.size()], op.mode, op.fill);
      continue;
    }
    std::int64_t before = pads[i].value(), after = pads[i + axes.size()].value();
    constexpr std::int64_t limit = std::int64_t{1} << 40;
    if (std::min(before, after) < -limit || std::max(before, after) > limit) invalid("pads are out of range");
    if (before < 0 || after < 0) {  // negative pads crop
      std::int64_t cut = std::max<std::int64_t>(0, -before);
      dim kept = x.type().dims.at(axis) - dim(cut) - dim(std::max<std::int64_t>(0, -after));
      if (kept.is_static() && kept.value() < 0)
        invalid("pads remove more than axis " + std::to_string(axis) + " of " + x.type().str());
      x = b.slice_axis(x, static_cast<std::int64_t>(axis), cut, kept);
    }
    op.before[axis] = std::max<std::int64_t>(0, before);
    op.after[axis] = std::max<std::int64_t>(0, after);
    grows |= before > 0 || after > 0;
  }
  return grows ? b.add(std::move(op), {x}) : x;
}

std::vector<value> padded(node& n) {
  value x = n.in(0);
  std::size_t rank = x.type().rank();
  known_elements pads;
  if (n.opset >= 11) pads = n.known(1, "pads");
  else if (auto listed = n.integers("pads")) pads.assign(listed->begin(), listed->end());
  else invalid("pads are missing");
  std::vector<std::int64_t> axes;
  if (n.opset >= 18 && n.has(3)) axes = n.numbers(3, "axes");
  else
    for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (pads.size() != 2 * axes.size())
    invalid("pads has " + std::to_string(pads.size()) + " entries for " + std::to_string(axes.size()) + " axes");
  pad op{std::vector<std::int64_t>(rank, 0), std::vector<std::int64_t>(rank, 0), pad_mode::constant_, 0};
  op.mode = enumerator_of<pad_mode>("mode", n.text("mode", "constant"));
  if (op.mode != pad_mode::constant_ || n.opset < 11 || !n.has(2)) {
    if (n.opset < 11 && op.mode == pad_mode::constant_) op.fill = n.real("value", 0);
    return {pad_axes(n.b, x, std::move(op), pads, axes)};
  }
  if (n.type(2).element_count() != 1) invalid("constant_value must have one element, not " + n.type(2).str());
  if (auto fill = n.b.constant_of(n.in(2))) {
    op.fill = fill->at(0);
    return {pad_axes(n.b, x, std::move(op), pads, axes)};
  }
  // The value is computed when the model runs: a padded mask tells where the data is.
  value all = n.b.broadcast_to(n.b.scalar(element_type::boolean, 1), n.dims(0));
  value kept = pad_axes(n.b, all, op, pads, axes);
  return {n.b.where(kept, pad_axes(n.b, x, op, pads, axes), n.b.with_dims(n.in(2), {}))};
}

// Crops or zero-pads to the given size, around the centre.
std::vector<value> center_crop_pad(node& n) {
  value x = n.in(0);
  const std::size_t rank = n.rank(0);
  const known_elements sizes = n.known(1, "shape");
  auto axes = n.integers("axes").value_or(std::vector<std::int64_t>{});
  if (axes.empty())
    for (std::size_t i = 0; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (sizes.size() != axes.size())
    invalid("shape has " + std::to_string(sizes.size()) + " entries for " + std::to_string(axes.size()) + " axes");
  pad op{std::vector<std::int64_t>(rank, 0), std::vector<std::int64_t>(rank, 0), pad_mode::constant_, 0};
  bool grows = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = normalize_axis(axes[i], rank);
    const auto at = static_cast<std::size_t>(axis);
    const dim have = x.type().dims.at(at), want = sizes[i];
    if (want.is_static() && (want.value() < 0 || want.value() > std::int64_t{1} << 40))
      invalid("size " + want.str() + " is out of range");
    if (!have.is_static() || !want.is_static()) {
      const dim_facts& facts = n.b.facts();
      const dim before = facts.max(want - have, 0) / dim(2) - facts.max(have - want, 0) / dim(2);
      x = n.b.pad_axis(x, axis, before, want - have - before, pad_mode::constant_, 0);
      continue;
    }
    const std::int64_t missing = want.value() - have.value();
    if (missing < 0) x = n.b.slice_axis(x, axis, -missing / 2, want);
    op.before[at] = std::max<std::int64_t>(missing, 0) / 2;
    op.after[at] = std::max<std::int64_t>(missing, 0) - op.before[at];
    grows |= missing > 0;
  }
  return {grows ? n.b.add(std::move(op), {x}) : x};
}

constexpr operator_row rows[] = {
    {"Transpose", transposed, 1},
    {"Concat", concatenated, 4},
    {"Slice", sliced, 1},
    {"Split", split},
    {"Pad", padded},
    {"CenterCropPad", center_crop_pad, 18},
};

}  // namespace

std::span<const operator_row> movement_operators() { return rows; }

}  // namespace kiln::onnx_import
