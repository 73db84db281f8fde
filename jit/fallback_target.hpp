// The target whose code a GPU runs that has no row of its own. Pure; any thread.
#pragma once

#include <string>

#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

// The generic row of an AMD GPU's family, or the row of the nearest lower NVIDIA architecture. Null if there is none.
// `architecture`: "gfx1104", "sm_99".
const target_row* fallback_row(const std::string& architecture);

}  // namespace kiln
