#include "aot/passes/constant_conditions.hpp"

#include "aot/passes/facts.hpp"

namespace kiln {

bool constant_conditions::apply(module& m) const {
  bool changed = false;
  for (instruction& at : m.instructions()) {
    if (!at.op().is<if_else>() || !m.has_uses(&at)) continue;
    auto condition = splat_of(at.inputs()[0]);
    if (!condition) continue;
    const module& taken = *at.bodies()[*condition != 0 ? 0 : 1];
    std::vector<value> arguments(at.inputs().begin() + 1, at.inputs().end());
    auto results = m.inline_module(taken, arguments, &at);
    for (std::uint32_t i = 0; i < results.size(); ++i) m.replace({&at, i}, results[i]);
    changed = true;
  }
  if (changed) m.erase_dead();
  return changed;
}

}  // namespace kiln
