// How the rows of each head are divided among the workgroups of wgmma_attention, so that all compute units end at about
// the same time. Plain data, and its choice by estimated times. Internal to mlir_bridge/gpu.
#pragma once

#include <cstdint>

namespace kiln::gpu {

struct row_division {
  // Each consumer warpgroup of a workgroup has 64 rows.
  std::int64_t consumers = 2;
  // The last tiles of each head have rows for `short_consumers` consumers only. The other consumers of their workgroups
  // are idle.
  std::int64_t short_tiles = 0, short_consumers = 0;

  friend bool operator==(const row_division&, const row_division&) = default;
};

// Estimates when the last workgroup ends, in hundredths of the time of a workgroup with two consumers. `groups`: of 64
// rows in each of the `heads` (of all batches). Workgroups with fewer consumers start last.
std::int64_t time_of(const row_division& division, std::int64_t groups, std::int64_t heads, std::int64_t units);

// Returns the division that ends first.
row_division divide_rows(std::int64_t groups, std::int64_t heads, std::int64_t units);

}  // namespace kiln::gpu
