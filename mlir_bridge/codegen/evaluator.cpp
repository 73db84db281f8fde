#include "mlir_bridge/codegen/evaluator.hpp"

#include <algorithm>
#include <numeric>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/evaluator_rules.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"

namespace kiln::codegen {

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
  if (auto buffer = e.in_memory(v)) result = load(*buffer, where, lanes);
  else result = compute(v, where, lanes);
  memo_[name] = result;
  return result;
}

Value evaluator::compute(value v, const position& where, std::int64_t lanes) {
  evaluator_rules rules{*this, e, code, *v.producer, where, lanes};
  return rules.compute();
}

evaluator::memory_offset evaluator::offset_of(const buffer& b, const position& where, std::int64_t lanes) {
  const auto strides = b.strides();
  memory_offset result{code.constant(0), {}};
  for (std::size_t i = 0; i < where.size(); ++i) {
    auto add_each = [&](Value index) {
      Value term = e.mul(index, strides[i]);
      result.each = result.each ? code.add(result.each, term) : term;
    };
    if (where[i].each) {
      add_each(where[i].each);
      continue;
    }
    if (const std::int64_t factor = known_factor(strides[i]))
      result.multiple = std::gcd(result.multiple, std::min(any_multiple, where[i].multiple) % any_multiple * factor);
    result.base = code.add(result.base, e.mul(where[i].base, strides[i]));
    if (where[i].step == 0 || lanes == 1) continue;
    if (strides[i].is_static()) result.step += where[i].step * strides[i].value();
    else add_each(code.mul(code.lane_numbers(lanes), where[i].step));
  }
  return result;
}

Value evaluator::load(const buffer& b, const position& where, std::int64_t lanes) {
  Value pointer = e.pointer(b);
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
  std::vector<Value> results;
  for (value v : e.fusion.outputs()) results.push_back(at(v, where, lanes));
  for (std::size_t i = 0; i < results.size(); ++i) store(e.output(i), where, results[i]);
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
