// Replaces what depends on constants, or on nothing since there are no elements, by constants, through
// operation::evaluate. A broadcast is never folded (it would only grow the file); what consumes one is. A result larger
// than `limit_bytes` is folded only where it is not larger than its inputs (a transposed weight). A result that is one
// number everywhere becomes a scalar and a broadcast. Constants of 4 bits are converted only where they are small
// (stays_packed).
#pragma once

#include "aot/passes/folding_budget.hpp"
#include "ir/module.hpp"

namespace kiln {

struct constant_folding {
  std::size_t limit_bytes = std::size_t{16} << 20;
  folding_budget* budget = nullptr;  // of the program that is optimized; null: no bound

  std::string_view name() const { return "constant_folding"; }
  bool apply(module& m) const;
};

}  // namespace kiln
