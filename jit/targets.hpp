// The table of targets that kernels can be finalized for, one row each (DESIGN.md, Targets). A new target is a new row.
#pragma once

#include <span>
#include <string_view>

#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

std::span<const target_row> targets();

// The row called `name`; "native" is this machine's CPU. Throws error{usage} for a name that is not in the table.
target_row find_target(std::string_view name);

// This machine's CPU as a row: LLVM's name of the processor and exactly the features that it reports.
target_row native_target();

// Whether code compiled for a CPU row runs on this machine.
bool runs_here(const target_row& row);

// Everything in the row that generated code depends on, as one string for cache keys.
std::string describe(const target_row& row);

}  // namespace kiln
