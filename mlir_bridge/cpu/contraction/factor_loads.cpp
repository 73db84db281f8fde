#include "mlir_bridge/cpu/contraction/factor_loads.hpp"

#include <algorithm>

#include "mlir_bridge/targets/target_table.hpp"

namespace kiln::cpu {

bool is_arm(const target_row& target) { return target.triple == arm_triple; }

factor_loads loads_of(const target_row& target, element_type accumulation, bool contiguous,
                      const std::optional<lane_products>& by_lane) {
  factor_loads loads{.registers = registers_of_factor(by_lane)};
  if (!is_arm(target)) return loads;
  // The dot products of bytes are Advanced SIMD's on processors with SVE, too.
  const bool dots = by_lane && !by_lane->arm.empty();
  if (dots) loads.lanes = neon_bits / 32;
  // Multiply-adds of Advanced SIMD take scalars from lanes. SVE's choose a lane in every 128 bits, which a load would
  // have to repeat.
  if (contiguous && (dots || target.vector_bits == neon_bits))
    loads.steps = neon_bits / std::max(32, storage_bits(accumulation));
  return loads;
}

}  // namespace kiln::cpu
