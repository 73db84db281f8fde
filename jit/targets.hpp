// Targets by what a user calls them: the rows of mlir_bridge/targets/target_table.hpp, and this machine's own CPU.
#pragma once

#include <string_view>

#include "mlir_bridge/targets/target_table.hpp"

namespace kiln {

// The row called `name`; "native" is this machine's CPU. Throws error{usage} for a name that is not in the table.
target_row find_target(std::string_view name);

// This machine's CPU as a row: LLVM's name of the processor and exactly the features that it reports.
target_row native_target();

// Whether code compiled for a CPU row runs on this machine.
bool runs_here(const target_row& row);

}  // namespace kiln
