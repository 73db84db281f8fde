// Replaces instructions by constants, through operation::evaluate, if all inputs are constants or the result has no
// elements. A broadcast is never folded by itself, because it would only grow the file; an operation that reads a
// broadcast is folded. A result larger than `limit_bytes` is folded only if it is not larger than its inputs (a
// transposed weight). A result whose elements are all equal becomes a scalar and a broadcast. Weights of
// 4 and 8 bits are not converted where products read them (stays_packed).
#pragma once

#include "aot/passes/folding_budget.hpp"
#include "ir/module.hpp"

namespace kiln {

struct constant_folding {
  std::size_t limit_bytes = std::size_t{16} << 20;
  folding_budget* budget = nullptr;  // budget of the program being optimized; null: no bound

  std::string_view name() const { return "constant_folding"; }
  bool apply(module& m) const;
};

}  // namespace kiln
