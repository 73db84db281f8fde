// Products of few rows by groups of columns: the work items, and how sums in registers become results.
#pragma once

#include <functional>
#include <string>

#include "mlir_bridge/kinds/dot/cpu/streaming_dot.hpp"

namespace kiln::cpu {

// Writes the results of one row, one for each column of the group.
using write_row = std::function<void(std::int64_t row, std::span<const Value> totals)>;

// Opens and closes a stage. `multiply` computes all rows of `count` columns from `column` on: `at_once` of them, or one
// where fewer are left.
void for_column_groups(kernel_emitter& e, const dot_sizes& sizes, const std::string& stage, std::int64_t at_once,
                       const std::function<void(Value column, std::int64_t count, const write_row& write)>& multiply);

}  // namespace kiln::cpu
