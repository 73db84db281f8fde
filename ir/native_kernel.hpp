// What a finalizer makes of one portable kernel for one target and one set of shapes: an object and the launches that
// run it, in order, with scratch memory between them. Serialized with FlatBuffers (ir/native_kernel.fbs) into cache
// entries and into the `.kiln` file; reading verifies everything and throws error{corrupted}.
//
// Host ABI (target family cpu): each launch is an exported function
//   void symbol(void* const* buffers, std::int64_t begin, std::int64_t end)
// that does the work items [begin, end) of [0, grid); any split of the grid over threads gives the same result.
// `buffers` are the launch's arguments in the order of `arguments`.
//
// GPU ABI (families amdgpu and nvidia): one 8-byte global pointer for each launch argument, in the order of
// `arguments`, nothing else; an argument with a tensor_map is a 128-byte CUtensorMap by value in its place, aligned to
// 64 bytes. The grid counts workgroups (x, y, z), a workgroup has `block` work items in x, and `lds_bytes` of dynamic
// shared memory are given at launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/element_type.hpp"

namespace kiln {

enum class buffer_kind : std::uint8_t { input, output, scratch };

struct launch_argument {
  buffer_kind kind = buffer_kind::input;
  std::uint32_t index = 0;  // of the kernel's inputs, outputs or scratch buffers
  friend bool operator==(const launch_argument&, const launch_argument&) = default;
};

// A launch argument that is passed as a tensor descriptor over its buffer instead of a pointer (sm_90 and later); the
// fields are those of cuTensorMapEncodeTiled with element strides of 1 and zeros outside the tensor.
struct tensor_map {
  std::uint32_t argument = 0;             // of the launch
  element_type type = element_type::f16;  // 8 to 64 bits wide
  std::vector<std::int64_t> dims;         // elements, innermost first, 1 to 5 of them
  std::vector<std::int64_t> strides;      // bytes, of dims[1] and on; multiples of 16
  std::vector<std::int64_t> box;          // elements that one copy moves, at most 256 in each dimension
  std::int32_t swizzle_bytes = 0;         // 0, 32, 64, 128
  std::int32_t l2_promotion_bytes = 0;    // 0, 64, 128, 256
  friend bool operator==(const tensor_map&, const tensor_map&) = default;
};

// What the compiler reports, or the disassembly shows, of one launch; 0 where it does not.
struct launch_statistics {
  std::int64_t registers = 0;               // vector registers of one work item
  std::int64_t accumulation_registers = 0;  // of one work item, where they are registers of their own
  std::int64_t scalar_registers = 0;
  std::int64_t spills = 0;               // registers spilled
  std::int64_t private_bytes = 0;        // of one work item
  std::int64_t static_lds_bytes = 0;     // beside the dynamic lds_bytes
  std::int64_t matrix_instructions = 0;  // in the code
  friend bool operator==(const launch_statistics&, const launch_statistics&) = default;
};

struct launch {
  std::string symbol;
  std::int64_t grid = 1;  // cpu: work items; gpu: workgroups in x (grid_y, grid_z beside it)
  std::int64_t grid_y = 1, grid_z = 1;
  std::int64_t block = 1;  // gpu: work items of a workgroup
  std::int64_t lds_bytes = 0;
  std::vector<launch_argument> arguments;
  // True when it reads only inputs that may be constants and writes scratch that outlives a run (packed weights): a
  // runtime runs it once at load if those inputs are constants, and before the others on every run if they are not.
  bool prepare = false;
  std::vector<tensor_map> tensor_maps = {};  // nvidia; at most one for each argument
  launch_statistics statistics = {};
  // nvidia: its code waits by itself for the grids before it (griddepcontrol.wait) before it touches memory, so a graph
  // may begin it before they have ended.
  bool waits = false;
  friend bool operator==(const launch&, const launch&) = default;
};

struct scratch_buffer {
  std::int64_t bytes = 0;
  bool prepared = false;  // written by a `prepare` launch
  // Zero before the first run; every run finds it zero and leaves it zero (counters of a split-K fix-up), so it never
  // shares memory.
  bool zeroed = false;
  friend bool operator==(const scratch_buffer&, const scratch_buffer&) = default;
};

struct native_kernel {
  std::vector<std::byte> object;  // ELF relocatable (cpu), code object (amdgpu), PTX or cubin (nvidia)
  std::vector<scratch_buffer> scratch;
  std::vector<launch> launches;
  std::int64_t registers = 0, spills = 0;  // as the compiler reports them; 0 where it does not
  friend bool operator==(const native_kernel&, const native_kernel&) = default;
};

std::vector<std::byte> serialize(const native_kernel& kernel);
native_kernel deserialize_native_kernel(std::span<const std::byte> bytes);

}  // namespace kiln
