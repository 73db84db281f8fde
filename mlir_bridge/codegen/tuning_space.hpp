// What a tuner may try for a kernel: a generator's space function lists configurations with what each is expected to
// cost, and candidates.cpp orders, checks and limits them. A space stands next to the generator whose names it gives.
// Plain data; internal to mlir_bridge.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "mlir_bridge/kernel/kernel_configuration.hpp"

namespace kiln::codegen {

class kernel_emitter;

// cost: in any unit, the same for all candidates of one kernel.
struct candidate {
  kernel_configuration configuration;
  double cost = 0;
};

// The space of the emitter's fusion, in any order; configurations that come to the same code, or to none, are dropped
// later. What it emits is thrown away.
using space_function = std::vector<candidate> (*)(kernel_emitter&);
inline std::vector<candidate> default_only(kernel_emitter&) { return {}; }

// One named choice and the values worth trying.
struct choice {
  std::string name;
  std::vector<std::int64_t> values;
};
// Every way to choose, the last choice changing fastest.
std::vector<kernel_configuration> combinations(std::span<const choice> choices);

}  // namespace kiln::codegen
