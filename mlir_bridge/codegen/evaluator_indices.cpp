// The arithmetic of indices that the rules of operations share.
#include <algorithm>
#include <numeric>

#include "mlir_bridge/codegen/evaluator_rules.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"

namespace kiln::codegen {

axis_index evaluator_rules::fixed(std::int64_t position) {
  return {code.constant(position), 0, {}, position, position + 1, position ? std::abs(position) : any_multiple};
}

bool evaluator_rules::on_one_side(const axis_index& index, std::span<const dim> boundaries) const {
  if (index.uniform()) return true;
  return !index.each && index.step == 1 && index.multiple % lanes == 0 &&
         std::ranges::all_of(boundaries, [&](const dim& b) { return e.factor(b) % lanes == 0; });
}

axis_index evaluator_rules::affine(const axis_index& index, std::int64_t factor, const dim& moved) {
  if (factor == 1 && moved == 0) return index;
  axis_index result;
  if (!moved.is_static()) {
    result = affine(index, factor, 0);
    (result.each ? result.each : result.base) = e.add(result.each ? result.each : result.base, moved);
    result.low = INT64_MIN;
    result.high = INT64_MAX;
    result.multiple = std::max<std::int64_t>(1, std::gcd(result.multiple, e.factor(moved)));
    return result;
  }
  const std::int64_t offset = moved.value();
  result.base = code.add(code.mul(index.base, factor), offset);
  result.step = index.step * factor;
  if (index.each) result.each = code.add(code.mul(index.each, factor), offset);
  if (index.high != INT64_MAX) {
    std::int64_t a = index.low * factor + offset, b = (index.high - 1) * factor + offset;
    result.low = std::min(a, b);
    result.high = std::max(a, b) + 1;
  } else {
    result.low = factor > 0 ? index.low * factor + offset : INT64_MIN;
  }
  std::int64_t scaled = std::min(any_multiple, index.multiple) * std::max<std::int64_t>(1, std::abs(factor));
  result.multiple = std::max<std::int64_t>(1, std::gcd(scaled, offset));
  return result;
}

axis_index evaluator_rules::sum(const axis_index& a, const axis_index& b) {
  axis_index result;
  result.low = a.low + b.low;
  result.high = a.high == INT64_MAX || b.high == INT64_MAX ? INT64_MAX : a.high + b.high - 1;
  result.multiple = std::gcd(a.multiple, b.multiple);
  if (!a.each && !b.each) {
    result.base = code.add(a.base, b.base);
    result.step = a.step + b.step;
    return result;
  }
  result.base = code.constant(0);
  result.each = code.add(ev.each_lane(a, lanes), ev.each_lane(b, lanes));
  result.multiple = 1;
  return result;
}

axis_index evaluator_rules::times(const axis_index& index, const dim& factor) {
  if (factor.is_static()) return affine(index, factor.value(), 0);
  axis_index result;
  result.multiple =
      std::max<std::int64_t>(1, std::min(any_multiple, std::min(any_multiple, index.multiple) * e.factor(factor)));
  if (index.low < 0) result.low = INT64_MIN;
  if (index.uniform() || lanes == 1) {
    result.base = e.mul(index.base, factor);
    return result;
  }
  result.base = code.constant(0);
  result.each = e.mul(ev.each_lane(index, lanes), factor);
  result.multiple = 1;
  return result;
}

axis_index evaluator_rules::stretched(const axis_index& index, const dim& from, const dim& to) {
  if (from == to) return index;
  if (from == 1) return fixed(0);
  return ev.from_each(e.min(ev.each_lane(index, index.uniform() ? 1 : lanes), from - 1), index.uniform() ? 1 : lanes);
}

std::pair<axis_index, axis_index> evaluator_rules::divide(const axis_index& index, const dim& by) {
  if (!by.is_static()) {
    const std::int64_t wide = index.uniform() ? 1 : lanes;
    Value each = ev.each_lane(index, wide);
    return {ev.from_each(e.div(each, by), wide), ev.from_each(e.rem(each, by), wide)};
  }
  const std::int64_t divisor = by.value();
  axis_index quotient, remainder;
  if (index.high != INT64_MAX) quotient.high = (index.high - 1) / divisor + 1;
  remainder.low = 0;
  remainder.high = divisor;
  if (!index.each && index.low >= 0 && index.high <= divisor) {
    quotient = fixed(0);
    return {quotient, index};
  }
  // There are three cases: all lanes have the same quotient, each lane moves by whole quotients, or lanes are divided
  // one by one.
  std::int64_t span = index.step * lanes;
  bool together =
      !index.each && (index.step == 0 || (index.step > 0 && divisor % span == 0 && index.multiple % span == 0));
  if (together) {
    quotient.base = code.div(index.base, divisor);
    remainder.base = code.rem(index.base, divisor);
    remainder.step = index.step;
    remainder.multiple = std::gcd(index.multiple, divisor);
    quotient.multiple = index.multiple % divisor == 0 ? index.multiple / divisor : 1;
  } else if (!index.each && index.step % divisor == 0) {
    quotient.base = code.div(index.base, divisor);
    quotient.step = index.step / divisor;
    remainder.base = code.rem(index.base, divisor);
  } else {
    Value each = ev.each_lane(index, lanes);
    quotient.base = remainder.base = code.constant(0);
    quotient.each = code.div(each, divisor);
    remainder.each = code.rem(each, divisor);
  }
  return {quotient, remainder};
}

bool evaluator_rules::is_equal_in_lanes(value v, const position& where, int& operations) {
  if (operations-- <= 0) return false;
  const operation& op = v.producer->op();
  if (op.is<broadcast>()) {
    const std::vector<dim>& from = v.producer->inputs()[0].type().dims;
    const std::size_t lead = where.size() - from.size();
    for (std::size_t axis = 0; axis < where.size(); ++axis)
      if (!where[axis].uniform() && axis >= lead && !(from[axis - lead] == dim(1))) return false;
    return true;
  }
  if (const auto* positions = op.get_if<iota>()) return where[static_cast<std::size_t>(positions->axis)].uniform();
  return (op.is<elementwise>() || op.is<convert>()) && std::ranges::all_of(v.producer->inputs(), [&](value input) {
           return is_equal_in_lanes(input, where, operations);
         });
}

axis_index evaluator_rules::looked_up(value indices, const position& at, const dim& extent) {
  bool uniform = std::ranges::all_of(at, &axis_index::uniform);
  position places = at;
  // One index for all lanes, as where whole rows are gathered, leaves their elements neighbours.
  if (int operations = 16; !uniform && is_equal_in_lanes(indices, at, operations)) {
    for (axis_index& place : places) {
      if (place.each) place.base = code.to_index(code.lane(place.each, 0));
      place.step = 0, place.each = {};
    }
    uniform = true;
  }
  std::int64_t wide = uniform ? 1 : lanes;
  Value found = ev.at(indices, places, wide);
  found = convert_element(code, found, indices.type().type, element_type::i64);
  Value wrapped = code.select(code.less(found, code.integer(found.getType(), 0)), e.add(found, extent), found);
  axis_index result = ev.from_each(code.to_index(e.min(code.max(wrapped, 0), extent - 1)), wide);
  result.low = 0;
  result.high = known_bound(extent);
  return result;
}

Value evaluator_rules::nested(const std::function<Value()>& body) {
  auto saved = ev.memo_;
  Value result = body();
  ev.memo_ = std::move(saved);
  return result;
}

Value evaluator_rules::branch(Value condition, const std::function<Value()>& then,
                              const std::function<Value()>& otherwise) {
  return code.branch(condition, [&] { return values{nested(then)}; }, [&] { return values{nested(otherwise)}; })[0];
}

Value evaluator_rules::reads_table(element_type type, const std::vector<double>& numbers, const axis_index& index) {
  Value table = e.table(type, numbers);
  if (index.each) return code.load_gathered(table, index.each, type);
  return code.load_strided(table, index.base, index.step, type, index.uniform() ? 1 : lanes);
}

}  // namespace kiln::codegen
