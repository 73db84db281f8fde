#include "mlir_bridge/gpu/streaming_cost.hpp"

#include <algorithm>

namespace kiln::gpu {

namespace {

// Bytes that a compute unit moves per cycle.
constexpr double memory_rate = 24;
// Latency of a load, and cost of starting a workgroup, in cycles.
constexpr double round_trip = 900, start = 300;
constexpr std::int64_t whole_access =
    8;  // bytes of one thread, below which accesses rather than bytes are what memory does
// Per compute unit.
constexpr std::int64_t resident_threads = 2048;

}  // namespace

double streaming_cycles(const gpu_row& row, const streaming_work& work) {
  const std::int64_t per_unit = (work.groups + row.compute_units - 1) / row.compute_units;
  const std::int64_t together = std::min(per_unit, std::max<std::int64_t>(1, resident_threads / work.threads)),
                     rounds = (per_unit + together - 1) / together;
  const double waste =
      static_cast<double>(std::max<std::int64_t>(1, whole_access / std::max<std::int64_t>(1, work.access_bytes)));
  const double memory = static_cast<double>(together * work.threads) * work.bytes * waste / memory_rate;
  return static_cast<double>(rounds) * (std::max(memory, work.trips * round_trip) + work.cycles + start);
}

}  // namespace kiln::gpu
