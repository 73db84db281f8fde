#include "mlir_bridge/kinds/dot/cpu/block_weights.hpp"

#include <algorithm>

#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/cpu/contraction/blocking.hpp"

namespace kiln::cpu {

namespace {

bool is_code(element_type type) {
  using enum element_type;
  return type == u4 || type == i4 || type == u8 || type == i8;
}

// Returns true if v is equal along its last axis.
bool equal_along_block(value v) {
  const operation& op = v.producer->op();
  const auto equal = [](value input) { return equal_along_block(input); };
  if (op.is<broadcast>()) {
    const auto& from = v.producer->inputs()[0].type().dims;
    return from.empty() || from.back() == dim(1);
  }
  if (op.is<convert>() || op.is<elementwise>()) return std::ranges::all_of(v.producer->inputs(), equal);
  return !v.type().dims.empty() && v.type().dims.back() == dim(1);
}

// Returns the two operands of v = f(varying, equal), in this order.
std::optional<std::pair<value, value>> split(value v, scalar_function f, bool commutes) {
  const auto* op = v.producer->op().get_if<elementwise>();
  if (!op || op->function != f) return std::nullopt;
  const value first = v.producer->inputs()[0], second = v.producer->inputs()[1];
  if (equal_along_block(second)) return std::pair{first, second};
  if (commutes && equal_along_block(first)) return std::pair{second, first};
  return std::nullopt;
}

}  // namespace

std::optional<block_weights> find_block_weights(const kernel_emitter& e, const dot_sizes& sizes) {
  value v = e.anchor()->inputs()[1];
  const element_type left = e.anchor()->inputs()[0].type().type;
  if (accumulation_type(left) != element_type::f32 || !v.producer->op().is<reshape>()) return std::nullopt;
  v = v.producer->inputs()[0];
  const auto& dims = v.type().dims;
  if (dims.size() < 3 || !(dims[dims.size() - 3] == dim(sizes.n)) || !dims.back().is_static()) return std::nullopt;
  block_weights found;
  found.block = dims.back().value();
  if (!(dims[dims.size() - 2] * dims.back() == dim(sizes.k))) return std::nullopt;
  const auto scaled = split(v, scalar_function::mul, true);
  if (!scaled) return std::nullopt;
  value x = scaled->first;
  found.scales = scaled->second;
  if (const auto moved = split(x, scalar_function::sub, false))
    x = moved->first, found.offsets = moved->second, found.subtracts_offset = true;
  else if (const auto added = split(x, scalar_function::add, true)) x = added->first, found.offsets = added->second;
  if (!x.producer->op().is<convert>()) return std::nullopt;
  found.codes = x.producer->inputs()[0];
  const element_type type = found.codes.type().type;
  if (!is_code(type) || !e.in_memory(found.codes) || found.codes.type().rank() != dims.size()) return std::nullopt;
  const std::int64_t step = register_lanes(e, element_type::f32) * (storage_bits(type) == 4 ? 2 : 1);
  if (found.block % step != 0) return std::nullopt;
  return found;
}

Value of_blocks(kernel_emitter& e, value v, Value column, Value first, std::int64_t count) {
  position where(v.type().rank() - 3, axis_index{e.code.constant(0), 0, {}, 0, 1, any_multiple});
  where.push_back({column, 0, {}, 0, INT64_MAX, 1});
  where.push_back({first, count > 1 ? 1 : 0, {}, 0, INT64_MAX, 1});
  where.push_back({e.code.constant(0), 0, {}, 0, 1, any_multiple});
  return widen(e.code, evaluator(e).at(v, where, count), v.type().type, element_type::f32);
}

values even_and_odd(code_builder& code, Value low, Value high) {
  const std::int64_t lanes = code_builder::lanes_of(low);
  values result;
  for (std::int64_t first : {0, 1}) {
    llvm::SmallVector<std::int64_t> order;
    for (std::int64_t i = 0; i < lanes; ++i) order.push_back(2 * i + first);
    result.push_back(code.make<mlir::vector::ShuffleOp>(low, high, order));
  }
  return result;
}

}  // namespace kiln::cpu
