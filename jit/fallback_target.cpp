#include "jit/fallback_target.hpp"

#include "mlir_bridge/targets/target_table.hpp"
#include "runtime/gpu/generic_targets.hpp"
#include "runtime/gpu/properties.hpp"

namespace kiln {
namespace {

// The rows are in the order of their architectures.
const target_row* nearest_lower(const std::string& architecture) {
  const target_row* found = nullptr;
  for (const target_row& row : targets())
    if (row.family == target_family::nvidia && gpu::runs_on(gpu::api::cuda, architecture, row.processor)) found = &row;
  return found;
}

}  // namespace

const target_row* fallback_row(const std::string& architecture) {
  const std::string_view general = gpu::generic_target(architecture);
  return general.empty() ? nearest_lower(architecture) : find_row(general);
}

}  // namespace kiln
