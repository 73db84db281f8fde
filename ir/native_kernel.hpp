// What a finalizer makes of one portable kernel for one target and one set of shapes: an object and the launches that run
// it, in order, with scratch memory between them. Serialized with FlatBuffers (ir/native_kernel.fbs) into cache entries
// and into the `.kiln` file; reading verifies everything and throws error{corrupted}.
//
// Host ABI (target family cpu): each launch is an exported function
//   void symbol(void* const* buffers, std::int64_t begin, std::int64_t end)
// that does the work items [begin, end) of [0, grid); any split of the grid over threads gives the same result.
// `buffers` are the launch's arguments in the order of `arguments`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kiln {

enum class buffer_kind : std::uint8_t { input, output, scratch };

struct launch_argument {
  buffer_kind kind = buffer_kind::input;
  std::uint32_t index = 0;  // of the kernel's inputs, outputs or scratch buffers
  friend bool operator==(const launch_argument&, const launch_argument&) = default;
};

struct launch {
  std::string symbol;
  std::int64_t grid = 1;                   // cpu: work items; gpu: workgroups in x (grid_y, grid_z beside it)
  std::int64_t grid_y = 1, grid_z = 1;
  std::int64_t block = 1;                  // gpu: work items of a workgroup
  std::int64_t lds_bytes = 0;
  std::vector<launch_argument> arguments;
  // True when it reads only inputs that may be constants and writes scratch that outlives a run (packed weights): a runtime
  // runs it once at load if those inputs are constants, and before the others on every run if they are not.
  bool prepare = false;
  friend bool operator==(const launch&, const launch&) = default;
};

struct scratch_buffer {
  std::int64_t bytes = 0;
  bool prepared = false;  // written by a `prepare` launch
  friend bool operator==(const scratch_buffer&, const scratch_buffer&) = default;
};

struct native_kernel {
  std::vector<std::byte> object;           // ELF relocatable (cpu), code object (amdgpu), PTX or cubin (nvidia)
  std::vector<scratch_buffer> scratch;
  std::vector<launch> launches;
  std::int64_t registers = 0, spills = 0;  // as the compiler reports them; 0 where it does not
  friend bool operator==(const native_kernel&, const native_kernel&) = default;
};

std::vector<std::byte> serialize(const native_kernel& kernel);
native_kernel deserialize_native_kernel(std::span<const std::byte> bytes);

}  // namespace kiln
