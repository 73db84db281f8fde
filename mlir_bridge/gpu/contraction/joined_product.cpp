#include "mlir_bridge/gpu/contraction/joined_product.hpp"

#include "ir/ops/all.hpp"

namespace kiln::gpu {

namespace {

bool is_short_float(element_type type) { return type == element_type::f16 || type == element_type::bf16; }

// Returns the value that v converts.
value before_conversions(value v) {
  while (v.producer->op().is<convert>() && is_float(v.producer->inputs()[0].type().type)) v = v.producer->inputs()[0];
  return v;
}

bool join_normalization(const kernel_emitter& e, const instruction& inner, joined_product& joined) {
  const auto* op = inner.op().get_if<normalize>();
  const value operand = joined.rows, normalized = before_conversions(operand);
  if (!op || op->centered || normalized.producer != &inner || op->axes.size() != 1 ||
      op->axes[0] + 1 != static_cast<std::int64_t>(operand.type().rank()))
    return false;
  const value rows = before_conversions(inner.inputs()[0]);
  if (!e.in_memory(rows) || rows.type().type != operand.type().type) return false;
  joined.rows = rows, joined.epsilon = op->epsilon;
  return true;
}

bool join_product(const instruction& own, const instruction& inner, joined_product& joined) {
  const auto* op = inner.op().get_if<dot>();
  const bool alike = op && inner.op() == own.op() && inner.inputs()[0] == own.inputs()[0] &&
                     inner.outputs()[0] == own.outputs()[0] && inner.inputs()[1].type() == own.inputs()[1].type();
  if (!alike || joined.second) return false;
  joined.second = &inner;
  return true;
}

}  // namespace

std::optional<joined_product> find_joined_product(const kernel_emitter& e) {
  const instruction& own = *e.anchor();
  const auto* op = own.op().get_if<dot>();
  if (e.inner_anchors().empty() || !op || op->transpose_a || !is_short_float(own.inputs()[0].type().type) ||
      own.outputs()[0].rank() != 2 || !own.outputs()[0].is_static())
    return std::nullopt;
  joined_product joined{own.inputs()[0], {}, nullptr};
  for (const inner_anchor& inner : e.inner_anchors())
    if (!join_normalization(e, *inner.at, joined) && !join_product(own, *inner.at, joined)) return std::nullopt;
  return joined;
}

}  // namespace kiln::gpu
