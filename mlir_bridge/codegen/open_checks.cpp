#include "mlir_bridge/codegen/open_checks.hpp"

#include <algorithm>
#include <cstdint>

#include "ir/ops/all.hpp"
#include "ir/ops/cache_update.hpp"

namespace kiln::codegen {

bool never_negative(const dim& d) {
  if (d.is_static()) return d.value() >= 0;
  return std::ranges::all_of(d.terms(), [](const auto& term) {
    return term.second >= 0 && std::ranges::all_of(term.first, [](const auto& atom) {
             // A quotient of such numbers is one, and so are a minimum and a maximum.
             return std::ranges::all_of(atom->operands, never_negative);
           });
  });
}

namespace {

class condition_list {
 public:
  void not_negative(const dim& d) {
    if (never_negative(d)) return;
    add(dim::max(dim::min(d, 0), -1));
  }
  void equal(const dim& a, const dim& b) {
    if (a == b) return;
    not_negative(a - b);
    not_negative(b - a);
  }
  // `d` is not negative, or nothing is read because `count` is 0.
  void not_negative_unless_empty(const dim& d, const dim& count) {
    if (never_negative(d) || count == dim(0)) return;
    not_negative(dim::max(d, dim(0) - count));
  }

  std::vector<dim> take() { return std::move(list_); }

 private:
  void add(const dim& failed) {
    const dim check = failed * dim(std::int64_t{1} << 31);
    if (std::ranges::find(list_, check) == list_.end()) list_.push_back(check);
  }
  std::vector<dim> list_;
};

class fusion_checks {
 public:
  std::vector<dim> of(const module& fusion) {
    for (const instruction& i : fusion.instructions()) {
      for (const shape& s : i.outputs())
        for (const dim& d : s.dims) c_.not_negative(d);
      if (const auto* op = i.op().get_if<slice>()) check(*op, i);
      else if (i.op().is<reshape>()) c_.equal(i.outputs()[0].elements(), operand(i).elements());
      else if (const auto* op = i.op().get_if<pad>()) check(*op, i);
      else if (i.op().is<resize>()) check_resize(i);
      else if (const auto* op = i.op().get_if<gather>()) check_source(i, op->axis);
      else if (const auto* op = i.op().get_if<gather_elements>())
        check_elements(i, op->axis), check_source(i, op->axis);
      else if (const auto* op = i.op().get_if<gather_nd>()) check_tuples(i, op->batch_dims);
      else if (const auto* op = i.op().get_if<scatter_elements>())
        check_elements(i, op->axis), check_source(i, op->axis);
      else if (i.op().is<scatter_nd>()) check_tuples(i, 0);
      else if (const auto* op = i.op().get_if<cache_update>())
        c_.not_negative(size(i, 0, op->axis) - size(i, 1, op->axis));
      else if (const auto* op = i.op().get_if<top_k>()) check(*op, i);
      else if (const auto* op = i.op().get_if<attention>()) check(*op, i);
      else if (const auto* op = i.op().get_if<convolution>()) check_groups(i.outputs()[0], op->layout, op->groups);
      else if (const auto* op = i.op().get_if<transposed_convolution>())
        check_groups(operand(i), op->layout, op->groups);
    }
    return c_.take();
  }

 private:
  static const shape& operand(const instruction& i, std::size_t index = 0) { return i.inputs()[index].type(); }
  static const dim& size(const instruction& i, std::size_t index, std::int64_t axis) {
    const auto& dims = operand(i, index).dims;
    return dims.at(static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(dims.size()) : axis));
  }

  void check(const slice& op, const instruction& i) {
    const auto& in = operand(i).dims;
    for (std::size_t axis = 0; axis < in.size(); ++axis) {
      const dim &count = op.lengths[axis], start = op.starts[axis];
      const dim last = start + (count - dim(1)) * dim(op.steps[axis]);
      const bool up = op.steps[axis] > 0;
      c_.not_negative_unless_empty(up ? start : last, count);
      c_.not_negative_unless_empty(in[axis] - dim(1) - (up ? last : start), count);
    }
  }

  // The keys of the CPU's kernel have 32 bits for an index.
  void check(const top_k& op, const instruction& i) {
    const dim& extent = size(i, 0, op.axis);
    c_.not_negative(extent - dim(op.k));
    c_.not_negative(dim(std::int64_t{1} << 32) - extent);
  }

  // GPU kernels of a known number of queries have a launch of a known size, which reads keys.
  void check(const attention& op, const instruction& i) {
    const auto& queries = operand(i).dims;
    const std::size_t rank = queries.size(), position = head_axes(op.query_layout, rank).position;
    const dim& keys = operand(i, 1).dims[head_axes(op.key_layout, rank).position];
    const bool known_rows = queries[position].is_static() &&
                            std::all_of(queries.begin(), queries.end() - 3, [](const dim& d) { return d.is_static(); });
    if (known_rows) c_.not_negative(keys - dim(1));
  }

  // All modes but the constant one copy elements of the axis, so the axis must not be empty.
  void check(const pad& op, const instruction& i) {
    for (std::size_t axis = 0; axis < op.before.size(); ++axis)
      if (op.mode != pad_mode::constant_ && op.before[axis] + op.after[axis] > 0)
        c_.not_negative(operand(i).dims[axis] - dim(1));
  }

  // The kernel clamps the positions that it reads to the axis, so no axis may be empty unless there are no results.
  void check_resize(const instruction& i) {
    for (const dim& d : operand(i).dims) c_.not_negative_unless_empty(d - dim(1), i.outputs()[0].elements());
  }

  // The kernel clamps indices to the axis, so the axis must not be empty unless there are no indices.
  void check_source(const instruction& i, std::int64_t axis) {
    c_.not_negative_unless_empty(size(i, 0, axis) - dim(1), operand(i, 1).elements());
  }
  void check_tuples(const instruction& i, std::int64_t batch_dims) {
    const dim& length = operand(i, 1).dims.back();
    for (std::int64_t k = 0; length.is_static() && k < length.value(); ++k) check_source(i, batch_dims + k);
  }

  // Along the other axes the kernel reads the data at the position of the index, so `indices` must not be longer.
  void check_elements(const instruction& i, std::int64_t axis) {
    const auto &data = operand(i).dims, &indices = operand(i, 1).dims;
    const auto along = static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(data.size()) : axis);
    for (std::size_t k = 0; k < data.size(); ++k)
      if (k != along) c_.not_negative(data[k] - indices[k]);
  }

  // The number of channels must be a multiple of the number of groups.
  void check_groups(const shape& image, tensor_layout layout, std::int64_t groups) {
    const dim& channels = image.dims.at(layout == tensor_layout::channels_first ? 1 : image.rank() - 1);
    if (groups != 1) c_.equal(channels / dim(groups) * dim(groups), channels);
  }

  condition_list c_;
};

}  // namespace

std::vector<dim> open_checks(const module& fusion) { return fusion_checks().of(fusion); }

}  // namespace kiln::codegen
