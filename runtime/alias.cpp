#include "runtime/alias.hpp"

#include "ir/ops/bounded.hpp"
#include "ir/ops/data_sizes.hpp"
#include "ir/ops/movement.hpp"

namespace kiln {
namespace {

// True if the transpose keeps the order of all dims that are not 1.
bool moves_only_unit_dims(const transpose& op, const shape& input) {
  std::int64_t last = -1;
  for (std::int64_t axis : op.permutation) {
    const dim& size = input.dims[static_cast<std::size_t>(axis)];
    if (size == dim(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

}  // namespace

std::optional<value> alias_source(const instruction& i) {
  if (i.op().is<bounded>() || i.op().is<data_sizes>()) return i.inputs()[0];
  if (i.inputs().size() != 1 || i.outputs().size() != 1) return std::nullopt;
  value input = i.inputs()[0];
  const shape& from = input.type();
  const shape& to = i.outputs()[0];
  if (i.op().is<reshape>()) return input;
  if (!from.is_static() || !to.is_static()) return std::nullopt;
  bool same_bytes = false;
  if (const auto* op = i.op().get_if<transpose>()) same_bytes = moves_only_unit_dims(*op, from);
  if (i.op().is<broadcast>()) same_bytes = from.element_count() == to.element_count();
  return same_bytes ? std::optional(input) : std::nullopt;
}

value alias_root(value v) {
  while (auto source = alias_source(*v.producer)) v = *source;
  return v;
}

}  // namespace kiln
