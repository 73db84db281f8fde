// The GPU rows of the table of targets, one file for each family. Internal to mlir_bridge/targets.
#pragma once

#include <vector>

#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

std::vector<target_row> amd_rows();
std::vector<target_row> nvidia_rows();

}  // namespace kiln
