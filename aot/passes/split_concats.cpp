#include "aot/passes/split_concats.hpp"

#include <algorithm>

#include "ir/ops/all.hpp"

namespace kiln {

bool split_concats::apply(module& m) const {
  bool changed = false;
  for (instruction& at : m.instructions()) {
    const auto* joins = at.op().get_if<concat>();
    if (!joins || at.inputs().size() <= most_joined_inputs) continue;
    std::vector<value> inputs = at.inputs();
    while (inputs.size() > 1) {
      std::vector<value> joined;
      for (std::size_t begin = 0; begin < inputs.size(); begin += most_joined_inputs) {
        const std::size_t end = std::min(inputs.size(), begin + most_joined_inputs);
        const std::vector<value> part(inputs.begin() + static_cast<std::ptrdiff_t>(begin),
                                      inputs.begin() + static_cast<std::ptrdiff_t>(end));
        joined.push_back(part.size() == 1 ? part[0] : m.insert(&at, *joins, part));
      }
      inputs = std::move(joined);
    }
    m.replace(at.output(), inputs[0]);
    changed = true;
  }
  if (changed) m.erase_dead();
  return changed;
}

}  // namespace kiln
