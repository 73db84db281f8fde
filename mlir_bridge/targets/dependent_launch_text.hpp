// The PTX of programmatic dependent launch, which generators emit and the back end looks for.
#pragma once

#include <string_view>

namespace kiln {

// Waits until all preceding grids have ended and what they wrote is visible.
inline constexpr std::string_view wait_for_predecessors = "griddepcontrol.wait;";
// Once all workgroups have executed this or ended, the next grid may be placed.
inline constexpr std::string_view admit_dependents = "griddepcontrol.launch_dependents;";

// Attribute of the function of a kernel that must not start before its predecessors have ended.
inline constexpr std::string_view starts_after_predecessors = "kiln-starts-after-predecessors";

}  // namespace kiln
