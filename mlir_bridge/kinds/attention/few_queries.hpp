// Few queries, as in the steps of a decoder: open kernels have stages of their own for them, because what is worth its
// cost for many queries (packed keys, tiles of rows) is not for them. At any size one of the two kinds of stages has no
// work items.
#pragma once

#include "ir/dim.hpp"

namespace kiln {

inline constexpr std::int64_t most_few_queries = 4;

// 1 for at most most_few_queries queries, else 0.
inline dim is_few(const dim& queries) {
  const dim limit = most_few_queries + 1;
  return 1 - dim::min(queries, limit) / limit;
}

}  // namespace kiln
