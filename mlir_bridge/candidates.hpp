// Enumerates the configurations that a tuner may try for one kernel on one target (docs/candidates.md). Each of them
// generates code, and no two generate the same code; so the kernel's generator uses every name in them. Deterministic.
// Any number of threads may call at once, with one kernel each.
#pragma once

#include <vector>

#include "mlir_bridge/kernel/kernel_configuration.hpp"
#include "mlir_bridge/kernel/portable_kernel.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

// Upper bound on the number of candidates: only the default configuration, 8, 64, unlimited.
enum class tuning_effort : std::uint8_t { off, quick, full, exhaustive };
template <>
struct enum_table<tuning_effort> {
  static constexpr std::array<std::string_view, 4> names{"off", "quick", "full", "exhaustive"};
};

// Returns the default configuration ({}) first, then the others by increasing estimated cost. `kernel` must have static
// shapes (specialized) and is not changed. If the default configuration cannot be generated, throws as finalize does,
// unless effort is off. Generates the code of every candidate once (milliseconds each).
std::vector<kernel_configuration> candidate_configurations(const portable_kernel& kernel, const target_row& target,
                                                           tuning_effort effort);

}  // namespace kiln
