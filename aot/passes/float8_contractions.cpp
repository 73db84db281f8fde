#include "aot/passes/float8_contractions.hpp"

#include "aot/passes/facts.hpp"
#include "aot/passes/quantized_tensor.hpp"
#include "aot/passes/rewrite.hpp"
#include "aot/rewrite_log.hpp"

namespace kiln {
namespace {

constexpr auto f32 = element_type::f32;

bool has_zero_point(const quantized_tensor& t) { return t.zero || t.known_zero != 0; }

// The scale of the right operand along the result's columns, [columns] or scalar. Null if it is another one.
value column_scale(rewriter& write, const quantized_tensor& right, std::size_t axis) {
  if (value one = single_element(write, right.scale)) return one;
  const auto place = axis_before_movement(right, axis);
  return place ? along_one_axis(right.scale, *place) : value{};
}

// Returns what replaces the dot, or null and the reason.
value rewritten(rewriter& write, const instruction& at, const quantized_tensor& left, const quantized_tensor& right,
                std::string_view& reason) {
  const dot& op = *at.op().get_if<dot>();
  const std::size_t rank = at.outputs()[0].rank();
  if (left.elements.type().type != right.elements.type().type) return reason = "the operands differ in type", value{};
  if (has_zero_point(left) || has_zero_point(right)) return reason = "there is a zero point", value{};
  value left_scale, right_scale;
  if (left.scale && !(left_scale = single_element(write, left.scale)))
    return reason = "the left operand has more than one scale", value{};
  if (right.scale && !(right_scale = column_scale(write, right, rank - (op.transpose_b ? 2 : 1))))
    return reason = "the right operand's scale is not one for each column", value{};
  value sum = write.add(dot{op.transpose_a, op.transpose_b, f32},
                        {moved(write, left, left.elements), moved(write, right, right.elements)});
  for (value scale : {left_scale, right_scale}) {
    if (!scale) continue;
    scale = write.convert_to(scale, f32);
    std::vector<dim> along;
    if (!(scale.type().elements() == dim(1))) {
      along.assign(rank, dim(1));
      along.back() = scale.type().elements();
    }
    sum = write.apply(scalar_function::mul, {sum, write.broadcast_to(write.reshape_to(scale, along), sum.type().dims)});
  }
  return write.convert_to(sum, at.outputs()[0].type);
}

}  // namespace

bool float8_contractions::apply(module& m) const {
  bool changed = false;
  for (place here = m.instructions().begin(); here != m.instructions().end(); ++here) {
    instruction& at = *here;
    if (!at.op().is<dot>() || !m.has_uses(&at)) continue;
    const auto left = find_quantized(at.inputs()[0]), right = left ? find_quantized(at.inputs()[1]) : std::nullopt;
    if (!right || !is_float(left->elements) || !is_float(right->elements) ||
        (left->elements == at.inputs()[0] && right->elements == at.inputs()[1]))
      continue;
    rewriter write(m, here);
    std::string_view reason;
    const value made = rewritten(write, at, *left, *right, reason);
    if (!made) {
      if (log) log->refused(name(), reason, at.origin());
      continue;
    }
    if (log) log->fired(name(), "float8_dot", at.origin());
    m.replace(at.output(), made);
    changed = true;
  }
  if (changed) m.erase_dead();
  return changed;
}

}  // namespace kiln
