// Few rows, as in the steps of a decoder: open products and attention have stages of their own for them, because what
// is worth its cost for many rows (packed operands, tiles) is not for them. At any size one of the two kinds of stages
// has no work items.
#pragma once

#include "ir/dim.hpp"

namespace kiln::codegen {

inline constexpr std::int64_t most_few_rows = 4;

// 1 for at most most_few_rows rows, else 0.
inline dim is_few(const dim& rows) {
  const dim limit = most_few_rows + 1;
  return 1 - dim::min(rows, limit) / limit;
}

}  // namespace kiln::codegen
