// Tuning spaces: the space function of a generator lists configurations with their estimated costs, and candidates.cpp
// sorts, checks and limits them. A space is defined next to the generator that reads its names. Plain data; internal to
// mlir_bridge.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "mlir_bridge/kernel/kernel_configuration.hpp"

namespace kiln::codegen {

class kernel_emitter;

// `cost` may be in any unit that is the same for all candidates of a kernel.
struct candidate {
  kernel_configuration configuration;
  double cost = 0;
};

// Returns the tuning space of the emitter's fusion, in any order. Configurations that generate no code, or the same
// code as another one, are dropped later. Code that the function emits is discarded.
using space_function = std::vector<candidate> (*)(kernel_emitter&);
inline std::vector<candidate> default_only(kernel_emitter&) { return {}; }

// A parameter and the values worth trying.
struct choice {
  std::string name;
  std::vector<std::int64_t> values;
};
// Returns all combinations of the choices. The last choice varies fastest.
std::vector<kernel_configuration> combinations(std::span<const choice> choices);

}  // namespace kiln::codegen
