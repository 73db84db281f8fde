#include "mlir_bridge/codegen/evaluator.hpp"

#include <algorithm>
#include <numeric>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/evaluator_rules.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"

namespace kiln::codegen {

namespace {

// Returns true if an inner anchor has already stored the output.
bool is_stored(const kernel_emitter& e, std::size_t output) {
  const auto held = e.in_memory(e.outputs()[output]);
  const buffer to = e.output(output);
  return held && held->kind == to.kind && held->index == to.index;
}

}  // namespace

position evaluator::along(std::span<const Value> indices, std::int64_t lanes, std::int64_t axis) {
  position where;
  for (Value index : indices) where.push_back({index, 0, {}});
  for (axis_index& index : where)
    if (auto k = code_builder::known(index.base))
      index.low = *k, index.high = *k + 1, index.multiple = *k ? std::abs(*k) : any_multiple;
  if (lanes > 1) {
    axis_index& vector = axis < 0 ? where.back() : where[static_cast<std::size_t>(axis)];
    vector.step = 1;
    if (vector.high != INT64_MAX) vector.high += lanes - 1;
  }
  return where;
}

Value evaluator::element(value v, std::span<const Value> indices, std::int64_t lanes) {
  return at(v, along(indices, lanes), lanes);
}

Value evaluator::at(value v, const position& where, std::int64_t lanes) {
  if (auto found = bound_.find(v); found != bound_.end())
    return code.splat(found->second, code_builder::lanes_of(found->second) == 1 ? lanes : 1);
  if (lanes > 1 && std::ranges::all_of(where, &axis_index::uniform)) return code.splat(at(v, where, 1), lanes);
  key name{v, {}};
  name.second.emplace_back(nullptr, lanes, nullptr);
  for (const axis_index& index : where)
    name.second.emplace_back(index.base.getAsOpaquePointer(), index.step,
                             index.each ? index.each.getAsOpaquePointer() : nullptr);
  if (auto found = memo_.find(name); found != memo_.end()) return found->second;
  Value result;
  if (auto buffer = e.in_memory(v)) result = load(*buffer, where, lanes, e.pointer(*buffer));
  else result = compute(v, where, lanes);
  memo_[name] = result;
  return result;
}

Value evaluator::compute(value v, const position& where, std::int64_t lanes) {
  evaluator_rules rules{*this, e, code, *v.producer, where, lanes};
  return rules.compute();
}

namespace {

// Returns true if v is `number` divided by `divisor`.
bool is_quotient(Value v, Value number, std::int64_t divisor) {
  auto quotient = v.getDefiningOp<mlir::arith::DivUIOp>();
  return quotient && quotient.getLhs() == number && code_builder::known(quotient.getRhs()) == divisor;
}

// Returns the number whose remainder by `divisor` v is; null if v is no such remainder.
Value dividend(Value v, std::int64_t divisor) {
  auto remainder = v.getDefiningOp<mlir::arith::RemUIOp>();
  return remainder && code_builder::known(remainder.getRhs()) == divisor ? remainder.getLhs() : Value();
}

// The axes of a position from `first` on, up to some last one, whose indices are all digits of `number`.
struct digits {
  std::size_t first = 0;
  Value number;
};

// Finds the axes up to `last` whose indices code_builder::delinearize() made from one number.
std::optional<digits> find_digits(const std::vector<dim>& sizes, const position& where, std::size_t last) {
  Value number, rest;  // `rest` is the number without the digits that were found, except the outermost one
  std::int64_t divisor = 1;
  for (std::size_t axis = last + 1; axis-- > 0;) {
    const axis_index& index = where[axis];
    if (!index.uniform() || !sizes[axis].is_static()) return std::nullopt;
    const std::int64_t size = sizes[axis].value();
    if (rest && is_quotient(index.base, rest, divisor)) return digits{axis, number};
    if (size == 1 && code_builder::known(index.base) == 0) continue;
    const Value next = dividend(index.base, size);
    if (!next || (rest && !is_quotient(next, rest, divisor))) return std::nullopt;
    if (!rest) number = next;
    rest = next;
    divisor = size;
  }
  return std::nullopt;
}

}  // namespace

evaluator::memory_offset evaluator::offset_of(const buffer& b, const position& where, std::int64_t lanes) {
  const auto strides = b.strides();
  memory_offset result{code.constant(0), {}};
  std::int64_t constant = 0;
  auto add_base = [&](Value index, const dim& stride) {
    if (!code.on.small_code || !stride.is_static()) {
      result.base = code.add(result.base, e.mul(index, stride));
      return;
    }
    auto [variable, fixed] = code.split_sum(index);
    if (variable) result.base = code.add(result.base, e.mul(variable, stride));
    constant += fixed * stride.value();
  };
  // Offsets are summed from the outermost axis on. Axes below `joined` are part of a number that is added at its last
  // digit.
  std::vector<std::optional<digits>> numbers(where.size());
  std::vector<bool> joined(where.size());
  for (std::size_t axis = code.on.small_code ? where.size() : 0; axis-- > 0;) {
    numbers[axis] = find_digits(b.sizes, where, axis);
    if (!numbers[axis]) continue;
    for (std::size_t digit = numbers[axis]->first; digit < axis; ++digit) joined[digit] = true;
    axis = numbers[axis]->first;
  }
  for (std::size_t i = 0; i < where.size(); ++i) {
    auto add_each = [&](Value index) {
      Value term = e.mul(index, strides[i]);
      result.each = result.each ? code.add(result.each, term) : term;
    };
    if (where[i].each) {
      add_each(where[i].each);
      continue;
    }
    if (const std::int64_t factor = e.factor(strides[i]))
      result.multiple = std::gcd(result.multiple, std::min(any_multiple, where[i].multiple) % any_multiple * factor);
    if (!joined[i]) add_base(numbers[i] ? numbers[i]->number : where[i].base, strides[i]);
    if (where[i].step == 0 || lanes == 1) continue;
    if (strides[i].is_static()) result.step += where[i].step * strides[i].value();
    else add_each(code.mul(code.lane_numbers(lanes), where[i].step));
  }
  result.base = code.add(result.base, constant);
  return result;
}

Value evaluator::load(const buffer& b, const position& where, std::int64_t lanes, Value pointer) {
  auto [offset, each, step, multiple] = offset_of(b, where, lanes);
  if (!each && step == 1 && lanes > 1) return code.load(pointer, offset, b.type, lanes, multiple);
  if (!each) return code.load_strided(pointer, offset, step, b.type, lanes);
  each = code.add(each, code.splat(offset, lanes));
  if (step) each = code.add(each, code.mul(code.lane_numbers(lanes), step));
  return code.load_gathered(pointer, each, b.type);
}

Value evaluator::each_lane(const axis_index& index, std::int64_t lanes) {
  if (index.each) return index.each;
  if (lanes == 1) return index.base;
  Value each = code.splat(index.base, lanes);
  return index.step ? code.add(each, code.mul(code.lane_numbers(lanes), index.step)) : each;
}

axis_index evaluator::from_each(Value each, std::int64_t lanes) {
  if (code_builder::lanes_of(each) == 1) return {each, 0, {}};
  axis_index index;
  index.base = code.constant(0);
  index.each = each;
  return index;
}

void evaluator::store_outputs(std::span<const Value> indices, std::int64_t lanes) {
  store_outputs(along(indices, lanes), lanes);
}

void evaluator::store_outputs(const position& where, std::int64_t lanes) {
  std::vector<std::pair<std::size_t, Value>> results;
  for (std::size_t i = 0; i < e.outputs().size(); ++i)
    if (!is_stored(e, i)) results.emplace_back(i, at(e.outputs()[i], where, lanes));
  for (const auto& [i, result] : results) store(e.output(i), where, result);
}

void evaluator::store(const buffer& destination, const position& where, Value computed) {
  std::int64_t lanes = code_builder::lanes_of(computed);
  if (std::ranges::any_of(where, [](const axis_index& i) { return static_cast<bool>(i.each); }))
    throw error(error_kind::internal, "an output is stored at gathered positions");
  Value pointer = e.pointer(destination);
  auto [offset, each, step, multiple] = offset_of(destination, where, lanes);
  if (lanes == 1 || (!each && step == 1))
    return code.store(pointer, offset, destination.type, computed, lanes == 1 ? 1 : multiple);
  Value stored = code.to_storage(computed, destination.type);
  for (std::int64_t i = 0; i < lanes; ++i) {
    Value at = code.add(offset, i * step);
    if (each) at = code.add(at, code.lane(each, i));
    code.make<mlir::LLVM::StoreOp>(code.lane(stored, i), code.address(pointer, at, destination.type),
                                   static_cast<unsigned>(std::max(1, storage_bits(destination.type) / 8)));
  }
}

}  // namespace kiln::codegen
