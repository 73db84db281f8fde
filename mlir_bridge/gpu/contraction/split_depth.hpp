// Split-K: several workgroups each sum a part of one tile's depth. The last one to finish adds the parts in a fixed
// order, so that results are the same in every run, and continues with the epilogue. Takes one launch. Internal to
// mlir_bridge/gpu.
#pragma once

#include <utility>

#include "mlir_bridge/gpu/workgroup.hpp"

namespace kiln::gpu {

class split_depth {
 public:
  // Create it before the stage opens. Allocates scratch for `tiles` tiles with threads * sums 4- or 8-byte sums each.
  split_depth(kernel_emitter& e, std::int64_t tiles, std::int64_t splits, std::int64_t threads, std::int64_t registers,
              element_type sum);
  // The same for an open number of rows: `splits` depends on it, and is 1 where there are more than `most_tiles` tiles.
  split_depth(kernel_emitter& e, const dim& tiles, const dim& splits, std::int64_t most_tiles, std::int64_t threads,
              std::int64_t registers, element_type sum);
  // Writes `sums` to scratch and increments the tile's counter. `finish` runs in the tile's last workgroup with the
  // total. Contains barriers. `memory` points to 4 bytes of shared memory that are no longer in use.
  void combine(workgroup& group, Value tile, Value split, const values& sums, Value memory,
               const std::function<void(const values&)>& finish);
  // The same for an open number of splits, which may be 1. Returns the total, and whether this workgroup has it (i1).
  std::pair<values, Value> combine_open(workgroup& group, Value tile, Value split, const values& sums, Value memory);

 private:
  // Where the parts of one tile are, and how many sums a thread has.
  struct place {
    workgroup& group;
    Value pointer, of_tile;
    std::int64_t registers;
  };
  place store(workgroup& group, Value tile, Value split, const values& sums);
  values add_up(const place& at, const values& sums);
  Value offset(const place& at, Value part, std::int64_t first, std::int64_t lanes) const;
  kernel_emitter& e_;
  dim splits_;
  std::int64_t threads_;
  element_type sum_;
  buffer partial_, counters_;
};

}  // namespace kiln::gpu
