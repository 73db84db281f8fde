// The result of finalizing one portable kernel for one target and one set of shapes: an object and the launches that
// run it, in order, with scratch memory between them. Serialized with FlatBuffers (ir/native_kernel.fbs) into cache
// entries and `.kiln` files. Deserialization verifies everything and throws error{corrupted}.
//
// An *open* kernel serves all shapes: its code reads the sizes from a table of 64-bit integers, which is one more
// argument of its launches (buffer_kind::sizes). `sizes` says what the table holds, as expressions of the model's open
// dimensions, and so do the grids, the bytes of scratch memory and the tensor maps that depend on the shapes.
// at_sizes() computes them.
//
// Host ABI (target family cpu): each launch is an exported function
//   void symbol(void* const* buffers, std::int64_t begin, std::int64_t end)
// that executes the work items [begin, end) of [0, grid). The result does not depend on how the grid is split over
// threads. `buffers` holds the launch's arguments in the order of `arguments`.
//
// GPU ABI (families amdgpu and nvidia): the kernel takes one 8-byte global pointer per launch argument, in the order of
// `arguments`, and nothing else. An argument with a tensor_map is instead a 128-byte CUtensorMap passed by value,
// aligned to 64 bytes. The table of sizes is passed by value, too: 8 bytes for each size. The grid counts workgroups
// (x, y, z), a workgroup has `block` work items in x, and the launch provides `lds_bytes` of dynamic shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/dim.hpp"
#include "ir/element_type.hpp"

namespace kiln {

enum class buffer_kind : std::uint8_t { input, output, scratch, sizes };

struct launch_argument {
  buffer_kind kind = buffer_kind::input;
  std::uint32_t index = 0;  // among the kernel's inputs, outputs or scratch buffers; 0 for the table of sizes
  friend bool operator==(const launch_argument&, const launch_argument&) = default;
};

// A launch argument that is passed as a tensor descriptor of its buffer instead of a pointer (sm_90 and later). The
// fields are those of cuTensorMapEncodeTiled, with element strides of 1 and zero fill outside the tensor.
struct tensor_map {
  std::uint32_t argument = 0;             // index of the launch argument
  element_type type = element_type::f16;  // 8 to 64 bits wide
  std::vector<std::int64_t> dims;         // elements, innermost first, 1 to 5 of them
  std::vector<std::int64_t> strides;      // bytes, from dims[1] on; multiples of 16
  std::vector<std::int64_t> box;          // elements per copy, at most 256 in each dimension
  std::int32_t swizzle_bytes = 0;         // 0, 32, 64, 128
  std::int32_t l2_promotion_bytes = 0;    // 0, 64, 128, 256
  // For open kernels; they replace the last of `dims`, which is 0 then, and box[1].
  std::optional<dim> open_outer = {}, open_rows = {};
  friend bool operator==(const tensor_map&, const tensor_map&) = default;
};

// Statistics of one launch from the compiler or the disassembly; 0 if unknown.
struct launch_statistics {
  std::int64_t registers = 0;               // vector registers per work item
  std::int64_t accumulation_registers = 0;  // per work item, on targets with separate accumulation registers
  std::int64_t scalar_registers = 0;
  std::int64_t spills = 0;               // registers spilled
  std::int64_t private_bytes = 0;        // per work item
  std::int64_t static_lds_bytes = 0;     // in addition to the dynamic lds_bytes
  std::int64_t matrix_instructions = 0;  // number of matrix instructions in the code
  friend bool operator==(const launch_statistics&, const launch_statistics&) = default;
};

struct launch {
  std::string symbol;
  std::int64_t grid = 1;  // cpu: work items; gpu: workgroups in x (y and z: grid_y, grid_z)
  std::int64_t grid_y = 1, grid_z = 1;
  std::int64_t block = 1;  // gpu: work items per workgroup
  std::int64_t lds_bytes = 0;
  std::vector<launch_argument> arguments;
  // True for a launch that prepares weights: it reads only inputs that may be constants and writes scratch that
  // outlives a run. If those inputs are constants, the runtime runs it once at load; otherwise it runs it before the
  // other launches in every run.
  bool prepare = false;
  std::vector<tensor_map> tensor_maps = {};  // nvidia; at most one per argument
  launch_statistics statistics = {};
  // nvidia: programmatic dependent launch. The kernel executes griddepcontrol.wait before it touches memory other than
  // that of early_arguments, so a graph may start it before the preceding grids have finished.
  bool waits = false;
  // Indices of arguments that the kernel reads before it executes griddepcontrol.wait (weights). A graph may start it
  // early only if nothing in the run writes to their buffers.
  std::vector<std::uint32_t> early_arguments = {};
  // For open kernels; replaces `grid`.
  std::optional<dim> open_grid = {};
  // The launch copies an input to an output, and the launches after it change parts of this output. If both share their
  // memory, it is left out.
  struct copied {
    std::uint32_t input = 0, output = 0;
    friend bool operator==(const copied&, const copied&) = default;
  };
  std::optional<copied> copies = {};
  friend bool operator==(const launch&, const launch&) = default;
};

struct scratch_buffer {
  std::int64_t bytes = 0;
  bool prepared = false;  // written by a `prepare` launch
  // Zero before the first run. Every run finds it zero and must leave it zero (counters of a split-K fix-up), so it
  // never shares memory with another buffer.
  bool zeroed = false;
  // For open kernels; replaces `bytes`.
  std::optional<dim> open_bytes = {};
  friend bool operator==(const scratch_buffer&, const scratch_buffer&) = default;
};

struct native_kernel {
  std::vector<std::byte> object;  // ELF relocatable (cpu), code object (amdgpu), PTX or cubin (nvidia)
  std::vector<scratch_buffer> scratch;
  std::vector<launch> launches;
  std::int64_t registers = 0, spills = 0;  // as reported by the compiler; 0 if unknown
  std::vector<dim> sizes = {};             // open kernels: what the table of sizes holds
  // Of open kernels whose offsets have 32 bits: the bytes of its tensors, which must be below 2^31 (serves()).
  std::vector<dim> bounded_sizes = {};
  friend bool operator==(const native_kernel&, const native_kernel&) = default;
};

std::vector<std::byte> serialize(const native_kernel& kernel);
native_kernel deserialize_native_kernel(std::span<const std::byte> bytes);

// Returns true for a kernel that serves all sizes: its table, a grid or a scratch buffer depends on open dimensions. A
// kernel of one workgroup per row needs no table, only a grid.
bool is_open(const native_kernel& kernel);

// Computes the grids, scratch sizes and tensor maps of an open kernel for these values of the open dimensions. Returns
// the contents of its table of sizes; for any other kernel, an empty table. Throws error{corrupted} if a dimension has
// no value, or if a grid, a size or a tensor map is impossible.
std::vector<std::int64_t> at_sizes(native_kernel& kernel, const dim_bindings& values);

// Returns true if the kernel can be used for these values of the open dimensions: its bounded sizes must be below 2^31.
// Always true for kernels without bounded sizes. Throws what at_sizes() throws.
bool serves(const native_kernel& kernel, const dim_bindings& values);

}  // namespace kiln
