// What an AMDGPU code object says about its kernels in its metadata note.
// Errors: error{corrupted} for an object that is damaged or lacks its metadata. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::gpu {

struct argument_info {
  std::int64_t offset = 0, size = 0;  // bytes in the kernel argument segment
  std::string kind;                   // "global_buffer", "by_value", "hidden_..."
  friend bool operator==(const argument_info&, const argument_info&) = default;
};

struct kernel_info {
  std::string name;  // the entry symbol
  std::int64_t vgprs = 0, agprs = 0,
               sgprs = 0;  // allocated registers; vgprs counts agprs too where the file is unified (gfx90a on)
  std::int64_t vgpr_spills = 0, sgpr_spills = 0;
  std::int64_t static_lds = 0;      // bytes, without what a launch adds
  std::int64_t scratch = 0;         // bytes per work item ("private segment")
  std::int64_t wavefront = 0;       // work items
  std::int64_t argument_bytes = 0;  // of the whole segment, hidden arguments included
  std::vector<argument_info> arguments;
};

// The kernels of an AMDGPU ELF, relocatable or linked, in the note's order.
std::vector<kernel_info> read_code_object(std::span<const std::byte> object);

// The processor that it was made for, "gfx942"; without settings such as ":xnack-".
std::string read_processor(std::span<const std::byte> object);

}  // namespace kiln::gpu
