#include "mlir_bridge/kinds/attention/gpu/narrow_shape.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "mlir_bridge/gpu/contraction/chunk.hpp"

namespace kiln::gpu {

namespace {

constexpr std::int64_t chunk = lane_layout::chunk;

std::int64_t lds_bytes(const attention_problem& p, const lane_layout& lanes, std::int64_t waves) {
  return waves * narrow_shape::rows_of_tile(p, lanes) * (narrow_shape::pitch(p) + 2) * 4;
}

}  // namespace

std::int64_t narrow_shape::registers(const kernel_emitter& e, const attention_problem& p, const lane_layout& lanes) {
  const std::int64_t wave = e.target.gpu.wave;
  return (lanes.group_keys * (p.n.depth + p.n.value_depth) + lanes.row_tile * p.n.depth) / (2 * wave) +
         lanes.row_tile * p.n.value_depth / wave;
}

// Constants fitted on an H200 (bench/gpu/attention.py): a compute unit reads `unit_rate` bytes per cycle, or
// `device_rate` if all units read. Loads have a latency of `latency`, replacing a finished workgroup costs `turn`, and
// combining parts costs `join`: twice what fits a kernel by itself, because in a step of a language model the next
// kernel waits for it (bench/README.md).
double cost_of(const kernel_emitter& e, const attention_problem& p, const lane_layout& lanes,
               const narrow_shape& shape) {
  constexpr double unit_rate = 48, device_rate = 32, latency = 800, turn = 3000, join = 5000;
  const std::int64_t units = e.target.gpu.compute_units,
                     heads = p.n.batch * p.n.key_heads * narrow_shape::tiles_of_rows(p, lanes),
                     of_unit = ceil_div(heads * shape.key_parts, units);
  const std::int64_t blocks = ceil_div(p.n.keys, lanes.group_keys), of_part = ceil_div(blocks, shape.key_parts),
                     rounds = ceil_div(of_part, shape.waves);
  const auto bytes = static_cast<double>(lanes.group_keys * (p.n.depth + p.n.value_depth) * 2);
  const double busiest = static_cast<double>(of_unit * of_part) * bytes / unit_rate,
               all = static_cast<double>(heads * blocks) * bytes / (static_cast<double>(units) * device_rate);
  double cycles = std::hypot(busiest, all) + static_cast<double>(of_unit * rounds) * latency +
                  static_cast<double>(of_unit - 1) * turn;
  if (shape.key_parts > 1) {
    const std::int64_t elements = narrow_shape::rows_of_tile(p, lanes) * p.n.value_depth,
                       turns = ceil_div(elements / narrow_shape::joined_lanes, shape.waves * e.target.gpu.wave);
    cycles += join + static_cast<double>(turns - 1) * latency +
              static_cast<double>(elements * 4 * shape.key_parts) / unit_rate;
  }
  return cycles;
}

std::optional<narrow_shape> choose_narrow_shape(const kernel_emitter& e, const attention_problem& p,
                                                const kernel_configuration& configuration) {
  const matrix_instruction* unit = attention_instruction(e, p.query.type().type);
  if (!unit || p.n.keys == 0) return std::nullopt;
  const lane_layout lanes(*unit, e.target.family, e.target.gpu.wave);
  // A lane's pieces are 8 neighbouring depths; the pieces of all lanes fill a row of values.
  if (lanes.whole_row || p.n.depth % lanes.group_keys || p.n.value_depth % (chunk * lanes.key_tile))
    return std::nullopt;
  if (narrow_shape::registers(e, p, lanes) > e.target.gpu.registers * 90 / 100) return std::nullopt;
  // Several tiles of a head each read its keys. Allow this if a single tile does not keep the device busy and the keys
  // are small.
  const std::int64_t tiles = narrow_shape::tiles_of_rows(p, lanes), workgroups = p.n.batch * p.n.key_heads * tiles,
                     units = e.target.gpu.compute_units;
  const bool few = tiles == 1 || (workgroups <= 2 * units && workgroups * p.n.keys <= units * 4096);
  if (lds_bytes(p, lanes, 1) > e.target.gpu.lds_bytes || choose(configuration, "narrow", few ? 1 : 0) == 0)
    return std::nullopt;

  narrow_shape best;
  double least = std::numeric_limits<double>::max();
  const std::int64_t blocks = ceil_div(p.n.keys, lanes.group_keys), most_parts = std::min<std::int64_t>(blocks, 64),
                     asked_waves = choose(configuration, "waves", 0),
                     asked_parts = choose(configuration, "key_parts", 0);
  for (std::int64_t waves : {1, 2, 4, 8}) {
    if (lds_bytes(p, lanes, waves) > e.target.gpu.lds_bytes || (asked_waves && waves != asked_waves)) continue;
    for (std::int64_t parts = 1; parts <= most_parts; ++parts) {
      if (asked_parts && parts != std::clamp<std::int64_t>(asked_parts, 1, most_parts)) continue;
      const narrow_shape shape{waves, parts};
      // Skip shapes with many waves that have no block and would only help to combine results.
      if (waves > 4 && !asked_waves && ceil_div(blocks, parts) <= waves / 2) continue;
      if (const double c = cost_of(e, p, lanes, shape); c < least) least = c, best = shape;
    }
  }
  return least < std::numeric_limits<double>::max() ? std::optional(best) : std::nullopt;
}

}  // namespace kiln::gpu
