#include "aot/onnx/bounded_masks.hpp"

#include <algorithm>
#include <optional>

#include "aot/onnx/bounded_values.hpp"
#include "aot/onnx/dim_arithmetic.hpp"
#include "ir/ops/all.hpp"

namespace kiln::onnx_import {
namespace {

// The axes of one input that an operation combines, and the neutral element of the combination.
struct combination {
  std::size_t input = 0;
  std::vector<std::int64_t> axes;
  std::optional<literal> neutral;
};

std::optional<literal> neutral_of(reduction_kind kind, element_type type) {
  switch (kind) {
    case reduction_kind::sum: return literal::scalar(type, 0);
    case reduction_kind::mean: return is_float(type) ? std::optional(literal::scalar(type, 0)) : std::nullopt;
    case reduction_kind::product: return literal::scalar(type, 1);
    case reduction_kind::max: return lowest(type);
    case reduction_kind::min: return highest(type);
  }
  return std::nullopt;
}

// The axes along which the windows of a convolution or pooling move.
std::vector<std::int64_t> window_axes(const instruction& i, tensor_layout layout) {
  const auto rank = static_cast<std::int64_t>(i.inputs()[0].type().rank());
  const bool first = layout == tensor_layout::channels_first;
  std::vector<std::int64_t> axes;
  for (std::int64_t axis = first ? 2 : 1; axis < (first ? rank : rank - 1); ++axis) axes.push_back(axis);
  return axes;
}

std::optional<tensor_layout> layout_of(const instruction& i) {
  if (const auto* op = i.op().get_if<convolution>()) return op->layout;
  if (const auto* op = i.op().get_if<transposed_convolution>()) return op->layout;
  if (const auto* op = i.op().get_if<pooling>()) return op->layout;
  return std::nullopt;
}

// Windows at the end read padding as they read what lies beyond the axis: as 0, or as the lowest number. A mean over
// windows that reach beyond the axis would have to count the elements.
std::optional<combination> windows_of(const instruction& i) {
  const auto layout = layout_of(i);
  if (!layout) return std::nullopt;
  const shape& data = i.inputs()[0].type();
  const bool channels = is_bounded(data.dims.at(*layout == tensor_layout::channels_first ? 1 : data.rank() - 1));
  const bool others =
      std::ranges::any_of(std::span(i.inputs()).subspan(1), [](value v) { return has_bounded_dims(v.type()); });
  if (channels || others) return std::nullopt;
  const auto* op = i.op().get_if<pooling>();
  if (op && op->kind == pooling_kind::max) return combination{0, window_axes(i, *layout), lowest(data.type)};
  const bool within =
      !op || (!op->ceil_mode && std::ranges::all_of(op->pads_end, [](std::int64_t pad) { return pad == 0; }));
  if (!within) return std::nullopt;
  return combination{0, window_axes(i, *layout), literal::scalar(data.type, 0)};
}

std::vector<combination> combinations_of(const instruction& i) {
  if (i.inputs().empty()) return {};
  const element_type type = i.inputs()[0].type().type;
  if (const auto* op = i.op().get_if<reduce>()) return {{0, op->axes, neutral_of(op->kind, type)}};
  // arg-max selects the first of equal elements. Padding comes last, so it is never selected.
  if (const auto* op = i.op().get_if<arg_reduce>(); op && !op->select_last)
    return {{0, {op->axis}, op->largest ? lowest(type) : highest(type)}};
  // top-k keeps the order of equal elements. Padding comes last, so it is never preferred.
  if (const auto* op = i.op().get_if<top_k>()) return {{0, {op->axis}, op->largest ? lowest(type) : highest(type)}};
  if (const auto* op = i.op().get_if<softmax>()) return {{0, {op->axis}, lowest(type)}};
  if (const auto* op = i.op().get_if<cumulative_sum>()) return {{0, {op->axis}, literal::scalar(type, 0)}};
  // Padding may hold infinities, and 0 * inf is NaN, so both operands are masked.
  if (const auto* op = i.op().get_if<dot>())
    return {{0, {op->transpose_a ? -2 : -1}, literal::scalar(type, 0)},
            {1, {op->transpose_b ? -1 : -2}, literal::scalar(i.inputs()[1].type().type, 0)}};
  return {};
}

// Adds instructions in front of a given instruction.
class inserting {
 public:
  inserting(module& m, instruction& before, std::span<const bounded_dim> counts)
      : module_(m), before_(before), counts_(counts) {}

  value add(operation op, std::vector<value> inputs) {
    value made = module_.insert(&before_, std::move(op), std::move(inputs));
    made.producer->set_origin(before_.origin());
    return made;
  }
  value number(std::int64_t x) { return module_.add_constant(literal::from_int64({x})); }

  // Returns the value of a dimension as i64[1].
  value value_of(const dim& d) {
    auto symbol = [&](const std::string& name) {
      for (const bounded_dim& each : counts_)
        if (each.symbol.str() == name) return each.count;
      value ones = add(broadcast{{dim::symbol(name)}}, {number(1)});
      return add(reduce{reduction_kind::sum, {0}, true}, {ones});
    };
    return value_of_dim(d, {[this](operation op, std::vector<value> inputs) { return add(std::move(op), inputs); },
                            [this](std::int64_t x) { return number(x); }, symbol});
  }

 private:
  module& module_;
  instruction& before_;
  std::span<const bounded_dim> counts_;
};

class masking {
 public:
  masking(module& m, instruction& i, std::span<const bounded_dim> counts) : module_(m), i_(i), write_(m, i, counts) {}

  instruction* run(bool masks_windows) {
    const auto windows = masks_windows ? windows_of(i_) : std::nullopt;
    const auto combinations = windows ? std::vector{*windows} : combinations_of(i_);
    if (combinations.empty() || !std::ranges::all_of(combinations, [](const auto& c) { return c.neutral.has_value(); }))
      return nullptr;
    std::vector<value> over;  // counts
    std::int64_t elements = 1;
    for (const combination& what : combinations) {
      const auto dims = i_.inputs()[what.input].type().dims;
      for (std::int64_t axis : what.axes) {
        auto at = static_cast<std::size_t>(normalize_axis(axis, dims.size()));
        if (is_bounded(dims[at])) over.push_back(mask(what.input, at, *what.neutral));
        else if (dims[at].is_static()) elements *= dims[at].value();
        else over.push_back(count_of(dims[at]));
      }
    }
    const auto* op = i_.op().get_if<reduce>();
    return op && op->kind == reduction_kind::mean ? mean(*op, over, elements) : &i_;
  }

 private:
  value add(operation op, std::vector<value> inputs) { return write_.add(std::move(op), std::move(inputs)); }
  value number(element_type type, double x) { return module_.add_constant(literal::scalar(type, x)); }

  value count_of(const dim& d) { return write_.value_of(d); }

  // Masks the padding of the input along the axis. Returns the count of valid elements along it.
  value mask(std::size_t input, std::size_t axis, const literal& neutral) {
    value x = i_.inputs()[input];
    const auto dims = x.type().dims;
    value count = count_of(dims[axis]);
    value place = add(iota{element_type::i64, dims, static_cast<std::int64_t>(axis)}, {});
    value there = add(elementwise{scalar_function::less}, {place, add(broadcast{dims}, {count})});
    value other = add(broadcast{dims}, {module_.add_constant(neutral)});
    module_.set_input(&i_, input, add(elementwise{scalar_function::where}, {there, x, other}));
    return count;
  }

  // Replaces the mean by the sum divided by the number of valid elements.
  instruction* mean(reduce op, const std::vector<value>& counts, std::int64_t elements) {
    op.kind = reduction_kind::sum;
    value sum = add(op, {i_.inputs()[0]});
    const shape type = sum.type();
    value divisor = number(type.type, static_cast<double>(elements));
    for (value c : counts)
      divisor = add(elementwise{scalar_function::mul}, {divisor, add(convert{type.type}, {add(reshape{{}}, {c})})});
    // The mean of nothing is 0, as in onnxruntime.
    divisor = add(elementwise{scalar_function::max}, {divisor, number(type.type, 1)});
    value result = add(elementwise{scalar_function::div}, {sum, add(broadcast{type.dims}, {divisor})});
    module_.replace({&i_, 0}, result);
    module_.erase(&i_);
    return sum.producer;
  }

  module& module_;
  instruction& i_;
  inserting write_;
};

}  // namespace

instruction* mask_padding(module& m, instruction& i, std::span<const bounded_dim> counts, bool masks_windows) {
  return masking(m, i, counts).run(masks_windows);
}

// Each element of the result is the valid element of the data at the same position, when only valid elements are
// counted.
std::set<const instruction*> reshape_valid(const import_state& state, module& m, instruction& i,
                                           std::span<const bounded_dim> counts) {
  using fn = scalar_function;
  inserting write(m, i, counts);
  value x = i.inputs()[0];
  const std::vector<dim> from = x.type().dims, to = i.outputs()[0].dims;
  auto spread = [&](value v) { return write.add(broadcast{to}, {v}); };
  auto combined = [&](fn f, value a, value b) { return write.add(elementwise{f}, {a, b}); };
  // In the sequence of valid elements, strides are products of counts. In memory, strides are products of capacities.
  auto stride = [](const std::vector<dim>& dims, std::size_t axis) {
    dim product = 1;
    for (std::size_t k = axis + 1; k < dims.size(); ++k) product = product * dims[k];
    return product;
  };
  value place = spread(write.number(0));
  for (std::size_t axis = 0; axis < to.size(); ++axis) {
    value along = write.add(iota{element_type::i64, to, static_cast<std::int64_t>(axis)}, {});
    place = combined(fn::add, place, combined(fn::mul, along, spread(write.value_of(stride(to, axis)))));
  }
  const std::vector<dim> room = capacity_of(state, x.type()).dims;
  value source = spread(write.number(0));
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    // With no valid elements the stride is 0. Divide by 1 instead.
    value one = write.number(1);
    value step = combined(fn::max, write.value_of(stride(from, axis)), one);
    value size = combined(fn::max, write.value_of(from[axis]), one);
    value at = combined(fn::mod, combined(fn::div, place, spread(step)), spread(size));
    source = combined(fn::add, source, combined(fn::mul, at, spread(write.value_of(stride(room, axis)))));
  }
  value flat = write.add(reshape{{x.type().elements()}}, {x});
  value taken = write.add(gather{0}, {flat, source});
  m.replace({&i, 0}, taken);
  m.erase(&i);
  return {flat.producer};
}

}  // namespace kiln::onnx_import
