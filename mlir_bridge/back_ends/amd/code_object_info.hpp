// Reads the metadata note of an AMDGPU code object.
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
  // Bytes in the kernel argument segment.
  std::int64_t offset = 0, size = 0;
  std::string kind;  // "global_buffer", "by_value", "hidden_..."
  friend bool operator==(const argument_info&, const argument_info&) = default;
};

struct kernel_info {
  // The symbol of the kernel's entry.
  std::string name;
  // Numbers of allocated registers. From gfx90a on, where the register file is unified, vgprs includes agprs.
  std::int64_t vgprs = 0, agprs = 0, sgprs = 0;
  std::int64_t vgpr_spills = 0, sgpr_spills = 0;
  // Bytes of LDS in the object; a launch may add dynamic LDS.
  std::int64_t static_lds = 0;
  std::int64_t scratch = 0;    // bytes per work item ("private segment")
  std::int64_t wavefront = 0;  // work items
  // Bytes of the whole argument segment, including hidden arguments.
  std::int64_t argument_bytes = 0;
  std::vector<argument_info> arguments;
};

// Returns the kernels of an AMDGPU ELF (relocatable or linked) in the order of the note.
std::vector<kernel_info> read_code_object(std::span<const std::byte> object);

// Returns the processor that the object was compiled for ("gfx942"), without settings such as ":xnack-".
std::string read_processor(std::span<const std::byte> object);

}  // namespace kiln::gpu
