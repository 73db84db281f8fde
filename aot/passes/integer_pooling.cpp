#include "aot/passes/integer_pooling.hpp"

#include "aot/passes/facts.hpp"
#include "aot/passes/quantized_tensor.hpp"
#include "aot/passes/rewrite.hpp"
#include "aot/rewrite_log.hpp"

namespace kiln {

bool integer_pooling::apply(module& m) const {
  bool changed = false;
  for (place here = m.instructions().begin(); here != m.instructions().end(); ++here) {
    instruction& at = *here;
    const auto* p = at.op().get_if<pooling>();
    if (!p || p->kind != pooling_kind::max || !m.has_uses(&at) || at.outputs().size() != 1) continue;
    auto found = find_quantized(at.inputs()[0]);
    if (!found || is_float(found->elements) || !found->movement.empty() || found->zero || !found->scale) continue;
    auto scale = known_number(found->scale);
    if (!scale || !(*scale > 0)) continue;
    rewriter write(m, here);
    const shape type{element_type::f32, at.outputs()[0].dims};
    value result = write.convert_to(write.add(*p, {found->elements}), type.type);
    result = write.apply(scalar_function::sub, {result, write.splat(type, found->known_zero)});
    result = write.apply(scalar_function::mul, {result, write.splat(type, *scale)});
    m.replace(at.output(), write.convert_to(result, at.outputs()[0].type));
    if (log) log->fired(name(), "max_pooling", at.origin());
    changed = true;
  }
  if (changed) m.erase_dead();
  return changed;
}

}  // namespace kiln
