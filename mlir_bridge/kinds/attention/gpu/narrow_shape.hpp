// How attention of few rows (narrow_attention.cpp) divides the work: rows of a head in tiles of 16, keys over
// workgroups, a workgroup's in blocks over waves. Plain data, and the choice of it. Internal to mlir_bridge/gpu.
#pragma once

#include <algorithm>
#include <optional>

#include "mlir_bridge/kinds/attention/gpu/attention.hpp"
#include "mlir_bridge/kinds/attention/gpu/lane_layout.hpp"

namespace kiln::gpu {

struct narrow_shape {
  std::int64_t waves = 8, key_parts = 1;

  static constexpr std::int64_t joined_lanes = 4;  // depths of a thread that joins waves
  static std::int64_t rows_of_tile(const attention_problem& p, const lane_layout& lanes) {
    return std::min(p.rows, lanes.row_tile);
  }
  static std::int64_t tiles_of_rows(const attention_problem& p, const lane_layout& lanes) {
    return (p.rows + lanes.row_tile - 1) / lanes.row_tile;
  }
  // Registers of a lane: a block of keys and values, the queries, the sums of the result.
  static std::int64_t registers(const kernel_emitter& e, const attention_problem& p, const lane_layout& lanes);
  // Floats between rows of results in shared memory: neighbours begin in other banks.
  static std::int64_t pitch(const attention_problem& p) { return p.n.value_depth + 4; }
};

// None where it does not fit, or where other generators are better. "narrow", "waves" and "key_parts" of the
// configuration win.
std::optional<narrow_shape> choose_narrow_shape(const kernel_emitter& e, const attention_problem& p,
                                                const kernel_configuration& configuration);
// Estimated cycles until the last workgroup is done.
double cost_of(const kernel_emitter& e, const attention_problem& p, const lane_layout& lanes,
               const narrow_shape& shape);

}  // namespace kiln::gpu
