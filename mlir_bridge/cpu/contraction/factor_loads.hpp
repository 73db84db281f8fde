// How a target brings the factors of a product into registers. Pure; any thread.
#pragma once

#include "mlir_bridge/cpu/contraction/lane_product.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln::cpu {

// The length of a register of Advanced SIMD. Those of SVE are as long or longer.
inline constexpr int neon_bits = 128;

bool is_arm(const target_row& target);

struct factor_loads {
  std::int64_t registers = 1;  // that a vector of a factor takes (lane_product.hpp)
  // Steps of a row that one load of the left factor brings, for multiply-adds that take scalars from lanes of a
  // register; 1: a scalar is copied into all lanes when it is loaded.
  std::int64_t steps = 1;
  std::int64_t lanes = 0;  // of the sums that an instruction computes; 0: as many as a register holds
};

// `contiguous`: the steps of a row are neighbours in memory.
factor_loads loads_of(const target_row& target, element_type accumulation, bool contiguous,
                      const std::optional<lane_products>& by_lane = std::nullopt);

}  // namespace kiln::cpu
