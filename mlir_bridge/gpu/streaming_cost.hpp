// Estimates the time of work that is limited by memory. Orders the candidates of pointwise kernels, row teams, windows
// and transposes. Internal to mlir_bridge/gpu.
#pragma once

#include <cstdint>

#include "mlir_bridge/targets/target_row.hpp"

namespace kiln::gpu {

struct streaming_work {
  // Number of workgroups, and of threads per workgroup.
  std::int64_t groups = 1, threads = 64;
  // Bytes that one thread moves.
  double bytes = 0;
  // Bytes of one access of a thread.
  std::int64_t access_bytes = 16;
  // Number of dependent memory accesses (latencies in sequence).
  double trips = 1;
  // Cycles of a workgroup apart from memory accesses.
  double cycles = 0;
};

// Returns the cycles until the last workgroup has finished.
double streaming_cycles(const gpu_row& row, const streaming_work& work);

}  // namespace kiln::gpu
