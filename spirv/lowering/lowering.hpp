// Lowers the reader's output, which uses amdgcn's intrinsics, to a module that one target's back end accepts. Each
// launch gets an entry function with the ABI of ir/native_kernel.hpp, in which the size of a workgroup is a constant.
// So are the sizes of the grid and the numbers that the kernel takes, unless they depend on open dims; then the entry
// reads them from the table of sizes. There are four steps, which are called in this order and change the module in
// place. Errors: error{unsupported} naming a feature that the target lacks, error{corrupted} if a launch does not match
// its kernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace llvm {
class Module;
}

namespace kiln::spirv {

enum class machine_kind : std::uint8_t { amdgpu, nvidia, host };

struct lowering_target {
  machine_kind kind = machine_kind::host;
  // Lanes per wave; on the host, the value of warpSize.
  int wave = 32;
  std::string processor, features;  // LLVM's names
  std::int64_t shared_bytes = 0;    // per workgroup, for GPUs
};

// NVIDIA's compiler accepts at most this much shared memory per workgroup as static variables. More has to be dynamic.
inline constexpr std::int64_t nvidia_fixed_shared_bytes = 48 << 10;

// On the host, a wave consists of this many consecutive work items of a workgroup.
inline constexpr int host_wave = 32;

// A place in the kernel's table of sizes.
using size_place = std::optional<std::uint32_t>;

// The argument for a kernel's parameter: the entry's next buffer, or these bits, or a number of the table of sizes.
struct launch_value {
  bool buffer = true;
  std::uint64_t bits = 0;
  size_place open = {};
};

struct launch_site {
  std::string kernel;  // the entry point of the SPIR-V module
  std::string symbol;  // name of the entry function
  std::array<std::int64_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  std::int64_t shared_bytes = 0;  // dynamic shared memory
  std::vector<launch_value> values;
  // Replace sizes of the grid. The device's grid has one dimension then, which holds all workgroups.
  std::array<size_place, 3> open_grid{};
  // The length of the kernel's table of sizes if the entry reads it: it is the last argument then. Otherwise 0.
  std::size_t table = 0;

  bool has_open_grid() const { return open_grid[0] || open_grid[1] || open_grid[2]; }
};

// 1. Inlines everything into one function per launch, which takes the launch's buffers and its table of sizes, if it
// has one. Removes all other functions.
void make_entries(llvm::Module& module, std::span<const launch_site> launches, machine_kind kind);

// 2. Replaces math functions that the target's back end lacks by calls of kiln.math.NAME.TYPE (GPUs) or of libm (host).
// Returns the names of the kiln.math functions ("exp.f32"), which must be linked in from a library.
std::vector<std::string> lower_math(llvm::Module& module, const lowering_target& target);

// 3. Lowers indices, barriers and lane exchange to the target's own operations.
void lower_gpu(llvm::Module& module, std::span<const launch_site> launches, const lowering_target& target);
// Turns a workgroup into loops over its work items (host.cpp), and gives the entries the host's ABI.
void lower_host(llvm::Module& module, std::span<const launch_site> launches, const lowering_target& target);

}  // namespace kiln::spirv
