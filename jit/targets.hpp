// The targets that kernels can be finalized for: one row of data each (DESIGN.md, Targets). Adding a target adds a row.
#pragma once

#include <span>
#include <string_view>

#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

std::span<const target_row> targets();

// The row called `name`; "native" is the machine we are on. Throws error{usage} for a name that is not in the table.
target_row find_target(std::string_view name);

// This machine's CPU as a row: LLVM's name of the processor and exactly the features that it reports.
target_row native_target();

// Whether code made for a CPU row runs on this machine.
bool runs_here(const target_row& row);

// Everything about the row that code depends on, as one string for keys.
std::string describe(const target_row& row);

}  // namespace kiln
