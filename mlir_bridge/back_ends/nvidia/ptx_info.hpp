// Reads statistics from PTX text. Errors: error{corrupted} for text that is not PTX. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::gpu {

struct ptx_entry_info {
  std::string name;
  std::int64_t mma = 0, wgmma = 0;  // matrix instructions: mma.sync (and its .sp form), wgmma.mma_async
  // Declared `.local` memory in bytes: spills, and arrays that were not promoted to registers.
  std::int64_t local_bytes = 0;
};

// Returns the `.entry` functions of a PTX text in order. The text may end with a NUL.
std::vector<ptx_entry_info> read_ptx(std::string_view text);

}  // namespace kiln::gpu
