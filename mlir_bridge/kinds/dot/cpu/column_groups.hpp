// Products of few rows by groups of columns: the work items, and how sums in registers become results.
#pragma once

#include <functional>
#include <string>

#include "mlir_bridge/kinds/dot/cpu/streaming_dot.hpp"

namespace kiln::cpu {

// Results whose sums are in registers at the same time.
struct result_group {
  Value row, column;  // of its first result
  std::int64_t rows, columns;
};
// Writes the results of row `row` of the group, one for each of its columns.
using write_row = std::function<void(std::int64_t row, std::span<const Value> totals)>;

// Opens and closes a stage that computes all results in groups of `rows` by `columns`, and of fewer rows and single
// columns where these do not divide the sizes.
void for_column_groups(kernel_emitter& e, const dot_sizes& sizes, const std::string& stage, std::int64_t rows,
                       std::int64_t columns,
                       const std::function<void(const result_group& group, const write_row& write)>& multiply);

}  // namespace kiln::cpu
