// The rule of resize: weighted sums over taps, whose places are in constant tables or are computed.
#include <algorithm>

#include "ir/error.hpp"
#include "ir/reference/resize.hpp"
#include "ir/resized_axes.hpp"
#include "mlir_bridge/codegen/evaluator_rules.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/codegen/open_taps.hpp"

namespace kiln::codegen {

// The taps of an axis of static sizes are in constant tables.
evaluator_rules::mixed_axis evaluator_rules::tabulated(const resize& op, std::size_t axis, element_type weight_type) {
  const std::int64_t from = operand_dims()[axis].value(), to = result_dims()[axis].value();
  const auto taps = reference::resize_taps(op, op.scale(axis, from, to), from, to);
  std::size_t count = 1;
  for (const auto& t : taps) count = std::max(count, t.size());
  mixed_axis mix{axis, {}, {}};
  for (std::size_t k = 0; k < count; ++k) {
    std::vector<double> positions, weights;
    for (const auto& t : taps) {
      positions.push_back(k < t.size() ? static_cast<double>(t[k].index)
                          : t.empty()  ? 0
                                       : static_cast<double>(t[0].index));
      weights.push_back(k < t.size() ? t[k].weight : 0);
    }
    const axis_index& index = where[axis];
    mix.index.push_back(ev.from_each(reads_table(code.index_element(), positions, index), index.uniform() ? 1 : lanes));
    if (op.mode != resize_mode::nearest)
      mix.weight.push_back(code.splat(reads_table(weight_type, weights, index), index.uniform() ? lanes : 1));
  }
  return mix;
}

evaluator_rules::mixed_axis evaluator_rules::computed(const resize& op, std::size_t axis, element_type weight_type) {
  const std::int64_t wide = where[axis].uniform() ? 1 : lanes;
  const open_taps taps = open_taps_at(e, op, axis, operand_dims()[axis], result_dims()[axis],
                                      ev.each_lane(where[axis], wide), weight_type);
  mixed_axis mix{axis, {}, {}};
  for (Value position : taps.positions) mix.index.push_back(ev.from_each(position, wide));
  for (Value weight : taps.weights) mix.weight.push_back(wide == lanes ? weight : code.splat(weight, lanes));
  return mix;
}

// Resize is separable.
Value evaluator_rules::rule(const resize& op) {
  const auto &from = operand_dims(), &to = result_dims();
  position source = where;
  std::vector<mixed_axis> mixed;
  element_type type = operand().type().type;
  element_type weight_type = compute_type(type) == element_type::f64 ? element_type::f64 : element_type::f32;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (keeps_axis(op, i, from[i], to[i])) continue;
    const bool known = from[i].is_static() && to[i].is_static();
    mixed_axis mix = known ? tabulated(op, i, weight_type) : computed(op, i, weight_type);
    for (axis_index& read : mix.index) {
      read.low = 0;
      read.high = known_bound(from[i]);
    }
    if (op.mode == resize_mode::nearest) source[i] = mix.index[0];
    else mixed.push_back(std::move(mix));
  }
  if (!mixed.empty() && !is_float(type))
    throw error(error_kind::unsupported, "the CPU generators interpolate floating point images only, not " +
                                             std::string(name(type)) + "; convert the image to f32 before resizing it");
  // Computes the weighted sum over all combinations of taps, innermost axis first.
  std::function<Value(std::size_t)> interpolate = [&](std::size_t level) -> Value {
    if (level == mixed.size()) return ev.at(operand(), source, lanes);
    Value total;
    for (std::size_t k = 0; k < mixed[level].index.size(); ++k) {
      source[mixed[level].axis] = mixed[level].index[k];
      Value v = interpolate(level + 1);
      total = total ? code.fma(v, mixed[level].weight[k], total)
                    : code.make<mlir::arith::MulFOp>(v, mixed[level].weight[k]).getResult();
    }
    return total;
  };
  return interpolate(0);
}

}  // namespace kiln::codegen
