// How a row kernel (ir/row_kernel.hpp) covers the rows of one instruction.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/instruction.hpp"
#include "ir/row_kernel.hpp"
#include "runtime/plan.hpp"

namespace kiln {

// Blocks of one version, one after another.
struct row_blocks {
  std::size_t version = 0;
  std::int64_t first_row = 0, rows = 1;  // of the first block, and of each
  std::int64_t count = 0;
  // The rows of a single block that is not full; 0: all of them. It works on copies of its rows, repeated to fill it.
  std::int64_t valid = 0;
};

// The rows of the instruction, whose shapes must be static. Throws error{corrupted} if its tensors do not consist of
// the kernel's rows.
std::int64_t count_rows(const instruction& i, const row_kernel& kernel);

// As many blocks as possible of the largest version, then of the next one. If all blocks read a tensor that is larger
// than their rows (weights), rows that fill at least half of a block are one block: it reads that tensor once.
std::vector<row_blocks> cover_rows(const row_kernel& kernel, std::int64_t rows);

// Which launches of a version run for each block, and which scratch buffers each block has for itself. The others do
// not depend on the rows (packed weights): they run once, and all blocks read the same buffer.
struct row_launches {
  std::vector<bool> launches, scratch;
};
row_launches launches_per_block(const row_kernel& kernel, const native_kernel& version);

// Bytes from the scratch memory of one block to that of the next one.
std::int64_t scratch_stride(const scratch_buffer& scratch);

// Where the blocks of a launch find an argument.
block_part part_of(const launch_argument& a, const row_kernel& kernel, const native_kernel& version,
                   const row_launches& blocked, const row_blocks& blocks);

}  // namespace kiln
