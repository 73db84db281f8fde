// What a tuner may vary of CPU generators that have no space of their own, and how they read it. Internal to
// mlir_bridge.
#pragma once

#include "mlir_bridge/codegen/kernel_emitter.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"

namespace kiln::cpu {

using namespace codegen;

// Of generators that only use kernel_emitter::parallel: "grain".
std::vector<candidate> grain_choices(kernel_emitter& e);

// Of generators that walk rows (codegen/reduction_space.hpp): "abreast" and "grain".
std::vector<candidate> row_choices(kernel_emitter& e);
// States side by side that reduction_space::walk_row is to have: the configuration's "abreast", or `standard`.
std::int64_t rows_abreast(const kernel_emitter& e, std::int64_t standard);

}  // namespace kiln::cpu
