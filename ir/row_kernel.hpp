// A native kernel for any number of rows (ir/independent_rows.hpp): a few native kernels for blocks of rows. The
// runtime covers the rows of an instruction with blocks, the largest first, and passes each block the addresses of its
// rows. The parts are ordinary native kernels with static shapes, so the code, its cache entries and packed weights are
// the same as those of a model whose dims are static.
//
// A row kernel is stored in a program's kernel table as the payload of a native code object. Readers distinguish it
// from a plain native kernel by its file identifier, which an older Kiln refuses. Only host kernels are supported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/native_kernel.hpp"

namespace kiln {

// The rows of an input or output are contiguous in memory. An input without rows is the same for all blocks.
struct row_part {
  // Bytes of one row, or of the whole tensor if it has no rows.
  std::int64_t bytes = 0;
  bool per_row = false;
  friend bool operator==(const row_part&, const row_part&) = default;
};

struct row_version {
  // Rows of a block.
  std::int64_t rows = 1;
  native_kernel kernel;
  // Estimated time of a block, relative to those of the other versions; 0 if a block takes as long as its rows.
  std::int64_t cost = 0;
  friend bool operator==(const row_version&, const row_version&) = default;
};

struct row_kernel {
  // Every output has rows.
  std::vector<row_part> inputs, outputs;
  std::vector<row_version> versions;  // in descending order of rows; the last one has 1
  friend bool operator==(const row_kernel&, const row_kernel&) = default;
};

bool is_row_kernel(std::span<const std::byte> bytes);
// Verify the invariants above. Throw error{internal} on writing, error{corrupted} on reading.
std::vector<std::byte> serialize(const row_kernel& kernel);
row_kernel deserialize_row_kernel(std::span<const std::byte> bytes);

}  // namespace kiln
