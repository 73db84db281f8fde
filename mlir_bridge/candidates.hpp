// The configurations that a tuner may try for one kernel on one target (docs/candidates.md). Every one of them
// generates code, and no two generate the same code, so the kernel's generator uses every name in them.
// Deterministic. Any number of threads may ask at once (one kernel each).
#pragma once

#include <vector>

#include "mlir_bridge/kernel/kernel_configuration.hpp"
#include "mlir_bridge/kernel/portable_kernel.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

// The number of candidates: only the default configuration, at most 8, at most 64, all.
enum class tuning_effort : std::uint8_t { off, quick, full, exhaustive };
template <>
struct enum_table<tuning_effort> {
  static constexpr std::array<std::string_view, 4> names{"off", "quick", "full", "exhaustive"};
};

// The default configuration ({}) comes first; the others follow by increasing estimated cost.
// `kernel` has static shapes (specialized) and is not changed. Throws as finalize does where the default configuration
// has no code, unless effort is off. Generates every candidate once (milliseconds each).
std::vector<kernel_configuration> candidate_configurations(const portable_kernel& kernel, const target_row& target,
                                                           tuning_effort effort);

}  // namespace kiln
