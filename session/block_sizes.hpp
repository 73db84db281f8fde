// The sizes of a row kernel's blocks (ir/row_kernel.hpp), and what a block of each size costs.
#pragma once

#include <cstdint>
#include <vector>

namespace kiln {

struct row_traffic {
  // Bytes of one row in all inputs, and in all outputs.
  std::int64_t input_bytes = 0, output_bytes = 0;
  // Bytes that every block reads, such as weights.
  std::int64_t shared_bytes = 0;
  bool for_all_sizes = false;
  // Whether each block converts weights of at most 8 bits, which takes longer than multiplying a few rows by them.
  bool unpacks_weights = false;
};

// Returns the block sizes of a kernel in descending order; the last one is 1. A block should be large enough that its
// launch does not cost more than its work. A kernel that serves all sizes is compiled only once, so it may have more
// block sizes.
std::vector<std::int64_t> block_sizes(const row_traffic& traffic);

// Returns true if a block of so many rows should multiply by the packed weights of larger blocks. One row reads small
// weights faster as they are.
bool shares_panels(const row_traffic& traffic, std::int64_t rows);

// Returns the estimated time of a block, as row_version::cost: in multiples of the time that a row of a large block
// takes to be multiplied by each weight once. 0 if the kernel has no weights.
std::int64_t block_cost(const row_traffic& traffic, std::int64_t rows);

}  // namespace kiln
