// What work that memory limits costs a GPU: the estimate by which candidates of maps, row teams, windows and transposes
// are ordered. Internal to mlir_bridge/gpu.
#pragma once

#include <cstdint>

#include "mlir_bridge/targets/target_row.hpp"

namespace kiln::gpu {

struct streaming_work {
  std::int64_t groups = 1, threads = 64;  // workgroups, and threads of one
  double bytes = 0;                       // that a thread moves
  std::int64_t access_bytes = 16;         // of one access of a thread
  double trips = 1;                       // to memory, one after the other
  double cycles = 0;                      // of a workgroup, beside memory
};

// Cycles until the last workgroup is done.
double streaming_cycles(const gpu_row& row, const streaming_work& work);

}  // namespace kiln::gpu
