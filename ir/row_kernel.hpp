// A native kernel for any number of rows (ir/independent_rows.hpp): a few native kernels for blocks of rows. The
// runtime covers the rows of an instruction with blocks, the largest first, and passes each block the addresses of its
// rows. The parts are ordinary native kernels with static shapes, so the code, its cache entries and packed weights are
// the same as those of a model whose dims are static.
//
// It stands in a program's kernel table as the payload of a native code object. Readers distinguish it from a plain
// native kernel by the file identifier, which an older Kiln refuses. Only host kernels so far.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/native_kernel.hpp"

namespace kiln {

// An input or output. The rows of a tensor follow one another; an input without rows is the same for all blocks.
struct row_part {
  std::int64_t bytes = 0;  // of one row; of the whole tensor if it has no rows
  bool per_row = false;
  friend bool operator==(const row_part&, const row_part&) = default;
};

struct row_version {
  std::int64_t rows = 1;  // of a block
  native_kernel kernel;
  friend bool operator==(const row_version&, const row_version&) = default;
};

struct row_kernel {
  std::vector<row_part> inputs, outputs;  // every output has rows
  std::vector<row_version> versions;      // in descending order of rows; the last one has 1
  friend bool operator==(const row_kernel&, const row_kernel&) = default;
};

bool is_row_kernel(std::span<const std::byte> bytes);
// Verify the invariants above. Throw error{internal} on writing, error{corrupted} on reading.
std::vector<std::byte> serialize(const row_kernel& kernel);
row_kernel deserialize_row_kernel(std::span<const std::byte> bytes);

}  // namespace kiln
