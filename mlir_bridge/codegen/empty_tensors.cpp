#include "mlir_bridge/codegen/empty_tensors.hpp"

#include <algorithm>

#include "ir/ops/all.hpp"

namespace kiln::codegen {
namespace {

bool is_empty(const shape& type) {
  return std::ranges::any_of(type.dims, [](const dim& d) { return d == 0; });
}
bool is_empty(value v) { return is_empty(v.type()); }

// A concatenation: keeps only the parts that have elements.
value remaining_parts(module& m, instruction& i, const concat& op) {
  std::vector<value> parts;
  std::ranges::copy_if(i.inputs(), std::back_inserter(parts), [](value v) { return !is_empty(v); });
  return parts.size() == 1 ? parts[0] : m.insert(&i, op, parts);
}

// In all other cases the result does not depend on elements of the operands. A product, convolution or attention over
// no elements is 0, a reduction gives its neutral element, and padding of an empty tensor gives the fill. The value is
// computed by the reference implementation.
value independent_value(module& m, instruction& i) {
  std::vector<literal> zeros;
  for (value v : i.inputs()) zeros.push_back(literal::filled(v.type(), 0));
  literal result = i.op().evaluate(zeros)[0];
  auto same = result.splat();
  if (!same) return m.insert(&i, constant{std::move(result)}, {});
  return m.insert(&i, broadcast{result.type().dims},
                  {m.insert(&i, constant{literal::scalar(result.type().type, *same)}, {})});
}

value replacement(module& m, instruction& i) {
  const operation& op = i.op();
  if (const auto* c = op.get_if<concat>()) return remaining_parts(m, i, *c);
  // There are no updates.
  if (op.is<scatter_elements>() || op.is<scatter_nd>()) return i.inputs()[0];
  return independent_value(m, i);
}

}  // namespace

void replace_empty_operands(module& fusion) {
  bool changed = false;
  for (instruction& i : fusion.instructions()) {
    // A recurrent layer (several outputs) without time steps returns its initial state. The generator's loop handles
    // this.
    if (i.outputs().size() != 1 || is_empty(i.outputs()[0]) ||
        std::ranges::none_of(i.inputs(), [](value v) { return is_empty(v); }))
      continue;
    fusion.replace(i.output(), replacement(fusion, i));
    changed = true;
  }
  if (changed) fusion.erase_dead();
}

}  // namespace kiln::codegen
