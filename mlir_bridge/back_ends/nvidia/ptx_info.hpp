// Counts out of PTX text. Errors: error{corrupted} for text that is not PTX. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::gpu {

struct ptx_entry_info {
  std::string name;
  std::int64_t mma = 0, wgmma = 0;  // matrix instructions: mma.sync (and its .sp form), wgmma.mma_async
  std::int64_t local_bytes = 0;     // declared `.local` memory: spills and arrays that did not become registers
};

// The `.entry` functions of PTX text in their order. A terminating NUL is allowed.
std::vector<ptx_entry_info> read_ptx(std::string_view text);

}  // namespace kiln::gpu
