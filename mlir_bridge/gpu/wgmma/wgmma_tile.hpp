// How the wgmma kernel divides a matrix product: tiles of workgroups and clusters, warpgroups, depth of the pipeline.
// Plain data, and the choice of it by budgets and a cost in cycles. Internal to mlir_bridge/gpu.
#pragma once

#include <optional>
#include <vector>

#include "ir/element_type.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln::gpu {

struct wgmma_tile {
  std::int64_t m = 128, n = 256;              // of a workgroup
  std::int64_t stages = 4;                    // blocks of 128 bytes of k in shared memory
  std::int64_t consumers = 2;                 // warpgroups that multiply; one more warpgroup copies
  std::int64_t cluster_m = 1, cluster_n = 1;  // workgroups that share copies: of A along n, of B along m
  std::int64_t splits =
      1;  // workgroups of a cluster that share a tile's k and add up their sums; then no copies are shared
  std::int64_t group = 8;  // rows of clusters that are walked together, for the L2 cache
  bool bounded = false;    // waits end with an error (for trying a kernel)

  std::int64_t cluster() const { return cluster_m * cluster_n * splits; }
  std::int64_t threads() const { return (consumers + 1) * 128; }
  std::int64_t row_blocks() const { return m / consumers / 64; }
  std::int64_t sums() const { return row_blocks() * n / 2; }  // registers of a consumer's thread
  std::int64_t stage_bytes() const { return (m + n) * 128; }
};

// What of a product decides.
struct wgmma_size {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  std::int64_t element_bytes = 2;
  bool a_k_inner = true, b_k_inner = true;
  std::int64_t epilogue_bytes = 0;  // shared memory of one consumer warp
};

// How many clusters of one workgroup on each compute unit run at the same time.
std::int64_t resident_clusters(const wgmma_tile& tile, const target_row& target);

// Whether registers, shared memory and the shape of instructions and copies allow it.
bool legal(const wgmma_tile& tile, const wgmma_size& size, const target_row& target);

// All legal ones worth measuring.
std::vector<wgmma_tile> wgmma_candidates(const wgmma_size& size, const target_row& target);
// The tuner's form of them, by the same cost.
std::vector<codegen::candidate> wgmma_configurations(const wgmma_size& size, const target_row& target);

// The one that is expected to be fastest, changed by the configuration's "tile_m", "tile_n", "stages", "consumers",
// "cluster_m", "cluster_n", "splits", "group", "bounded"; none where the result is not legal or where mma.sync is
// expected to be faster ("wgmma" = 1 and 0 overrule the expectation; the others count beside "wgmma" = 1 only).
std::optional<wgmma_tile> choose_wgmma_tile(const wgmma_size& size, const target_row& target,
                                            const kernel_configuration& configuration);

}  // namespace kiln::gpu
