// Splits a loop over the machine's threads.
#pragma once

#include <cstdint>
#include <functional>

namespace kiln::reference {

// Calls f(begin, end) on disjoint ranges that make up [0, count), on several threads when `count` times `cost` (scalar
// operations per index, roughly) is worth it. Returns when all are done; what one of them throws is thrown here.
// Not a template: it is called from hundreds of instantiations, and its threads would be compiled for each.
void parallel_for(std::int64_t count, std::int64_t cost,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& f);

}  // namespace kiln::reference
