// Tuning spaces shared by CPU generators that have none of their own, and the functions that read the choices. Internal
// to mlir_bridge.
#pragma once

#include "mlir_bridge/codegen/kernel_emitter.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"

namespace kiln::cpu {

using namespace codegen;

// For generators that only use kernel_emitter::parallel: "grain".
std::vector<candidate> grain_choices(kernel_emitter& e);

// For generators that iterate over rows (codegen/reduction_space.hpp): "abreast" and "grain".
std::vector<candidate> row_choices(kernel_emitter& e);
// Returns the number of independent states for reduction_space::walk_row: "abreast" of the configuration, or
// `standard`.
std::int64_t rows_abreast(const kernel_emitter& e, std::int64_t standard);

}  // namespace kiln::cpu
