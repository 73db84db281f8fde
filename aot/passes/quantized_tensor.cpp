#include "aot/passes/quantized_tensor.hpp"

#include <algorithm>

#include "aot/passes/facts.hpp"
#include "aot/passes/reshape_groups.hpp"

namespace kiln {
namespace {

value operand(value v, std::size_t i = 0) { return v.producer->inputs()[i]; }
template <class Op>
bool is(value v) {
  return v.producer->op().is<Op>();
}

bool has_8_bits(value v) {
  using enum element_type;
  switch (v.type().type) {
    case i8:
    case u8:
    case f8e4m3:
    case f8e5m2:
    case f8e4m3fnuz:
    case f8e5m2fnuz: return true;
    default: return false;
  }
}

value behind_float_conversions(value v) {
  while (is<convert>(v) && is_float(v) && is_float(operand(v)) && !has_8_bits(operand(v)) && !has_8_bits(v))
    v = operand(v);
  return v;
}

// Matches q − zero. The zero point may be subtracted in several steps.
bool find_difference(value v, quantized_tensor& found) {
  v = behind_float_conversions(v);
  while (is_function(v, scalar_function::sub)) {
    value zero = operand(v, 1);
    if (auto number = known_number(zero)) found.known_zero += *number;
    else if (!found.zero) found.zero = zero;
    else return false;
    v = behind_float_conversions(operand(v));
  }
  if (!is<convert>(v) || !has_8_bits(operand(v))) return false;
  found.elements = operand(v);
  return true;
}

}  // namespace

std::optional<double> known_number(value v) {
  while (is<convert>(v) || is<broadcast>(v) || is<reshape>(v)) v = operand(v);
  const literal* data = module::constant(v);
  return data ? data->splat() : std::nullopt;
}

std::optional<quantized_tensor> find_quantized(value v) {
  if (has_8_bits(v)) return quantized_tensor{.elements = v};
  std::vector<instruction*> movement;
  for (;;) {
    v = behind_float_conversions(v);
    if (!is<reshape>(v) && !is<transpose>(v)) break;
    movement.insert(movement.begin(), v.producer);
    v = operand(v);
  }
  quantized_tensor found{.movement = movement};
  if (find_difference(v, found)) return found;
  if (!is_function(v, scalar_function::mul)) return std::nullopt;
  for (std::size_t side : {0, 1}) {
    found = {.scale = operand(v, 1 - side), .movement = movement};
    if (find_difference(operand(v, side), found)) return found;
  }
  return std::nullopt;
}

value moved(rewriter& write, const quantized_tensor& tensor, value elements) {
  for (const instruction* step : tensor.movement) elements = write.add(step->op(), {elements});
  return elements;
}

std::optional<std::size_t> axis_before_movement(const quantized_tensor& tensor, std::size_t axis) {
  for (auto step = tensor.movement.rbegin(); step != tensor.movement.rend(); ++step) {
    if (const auto* t = (*step)->op().get_if<transpose>()) {
      axis = static_cast<std::size_t>(t->permutation[axis]);
      continue;
    }
    const auto &from = (*step)->inputs()[0].type().dims, &to = (*step)->outputs()[0].dims;
    if (!only_unit_dims_change(from, to)) return std::nullopt;
    auto is_wide = [](const dim& d) { return !(d == dim(1)); };
    auto before = std::count_if(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(axis), is_wide);
    if (!is_wide(to[axis])) return std::nullopt;
    std::size_t i = 0;
    for (;; ++i)
      if (is_wide(from[i]) && before-- == 0) break;
    axis = i;
  }
  return axis;
}

value single_element(rewriter& write, value v) {
  while (is<broadcast>(v) || is<reshape>(v)) v = operand(v);
  return v.type().elements() == dim(1) ? write.reshape_to(v, {}) : value{};
}

}  // namespace kiln
