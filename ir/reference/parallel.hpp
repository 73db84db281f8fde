// Runs a loop on several threads.
#pragma once

#include <cstdint>
#include <functional>

namespace kiln::reference {

// Calls f(begin, end) on disjoint ranges that cover [0, count). Uses several threads if `count` times `cost` (roughly
// the scalar operations per index) is large enough to pay off. Returns when all ranges are done and rethrows an
// exception of f. Not a template: hundreds of instantiations call it, and each would compile the threading code again.
void parallel_for(std::int64_t count, std::int64_t cost,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& f);

}  // namespace kiln::reference
