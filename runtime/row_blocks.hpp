// Divides the rows of an instruction into blocks of a row kernel (ir/row_kernel.hpp).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/row_kernel.hpp"
#include "runtime/plan.hpp"

namespace kiln {

// Consecutive blocks that use one version of the kernel.
struct row_blocks {
  std::size_t version = 0;
  // The first row of the first block, and the rows per block.
  std::int64_t first_row = 0, rows = 1;
  std::int64_t count = 0;
  // Number of valid rows if this is a single partial block, otherwise 0. A partial block works on copies of its rows,
  // which are repeated to fill the block.
  std::int64_t valid = 0;
};

// Returns the number of rows of an instruction with tensors of these bytes; `what` is its name for messages. Throws
// error{corrupted} if the tensors do not consist of the kernel's rows.
std::int64_t count_rows(const row_kernel& kernel, std::span<const std::size_t> inputs,
                        std::span<const std::size_t> outputs, const std::string& what);

// Covers the rows with as many blocks as possible of the largest version, then of the next one, and so on. If the
// versions have costs, it looks for the cover that costs least, and rows that do not fill a block may become a partial
// one.
std::vector<row_blocks> cover_rows(const row_kernel& kernel, std::int64_t rows);
// The same, in a vector that may be used again.
void cover_rows(const row_kernel& kernel, std::int64_t rows, std::vector<row_blocks>& result);

// Which launches of a version run once per block, and which scratch buffers exist once per block. Other launches do not
// depend on the rows (packing of weights): they run once, and all blocks share their scratch buffer.
struct row_launches {
  std::vector<bool> launches, scratch;
};
row_launches launches_per_block(const row_kernel& kernel, const native_kernel& version);

// Returns the distance in bytes between the scratch memory of consecutive blocks.
std::int64_t scratch_stride(const scratch_buffer& scratch);

// How many items of a launch all blocks compute before the next items follow, so that a core's cache keeps what these
// items read and the blocks share (weights); 0 if the blocks share less than each has for itself: then they follow one
// another.
std::int64_t items_at_once(const launch& what, const row_kernel& kernel, const native_kernel& version,
                           const row_launches& blocked, const row_blocks& blocks);

// Returns the location of a launch argument in the blocks.
block_part part_of(const launch_argument& a, const row_kernel& kernel, const native_kernel& version,
                   const row_launches& blocked, const row_blocks& blocks);

}  // namespace kiln
