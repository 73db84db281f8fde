// From what the reader made (amdgcn's terms) to a module that one target's back end takes: one entry function for each
// launch, with the ABI of ir/native_kernel.hpp, sizes of grid and workgroup as constants. Four steps, called in this
// order; the module is changed in place.
//
// Errors: error{unsupported} naming what the target does not have, error{corrupted} where a launch and its kernel do
// not fit.
#pragma once

#include <array>
#include <cstdint>
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
  int wave = 32;                    // lanes of a wave; on the host what warpSize says there
  std::string processor, features;  // LLVM's
  std::int64_t shared_bytes = 0;    // of a workgroup, of GPUs
};

// NVIDIA's compiler takes this much of a workgroup's shared memory as variables; more is dynamic.
inline constexpr std::int64_t nvidia_fixed_shared_bytes = 48 << 10;

// On the host a wave is this many work items of a workgroup, one after another.
inline constexpr int host_wave = 32;

// What a kernel's parameter receives: the entry's next buffer, or these bits.
struct launch_value {
  bool buffer = true;
  std::uint64_t bits = 0;
};

struct launch_site {
  std::string kernel;  // the entry point of the SPIR-V module
  std::string symbol;  // of the entry function
  std::array<std::int64_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  std::int64_t shared_bytes = 0;  // of dynamic shared memory
  std::vector<launch_value> values;
};

// 1. Everything is inlined into one function for each launch, which takes its buffers; all other functions go away.
void make_entries(llvm::Module& module, std::span<const launch_site> launches);

// 2. Mathematics that the target's back end does not have become calls of kiln.math.NAME.TYPE; returned are their names
// ("exp.f32"), for a library to be linked in (GPUs). On the host they are libm's.
std::vector<std::string> lower_math(llvm::Module& module, const lowering_target& target);

// 3. Indices, barriers and what lanes exchange become the target's own.
void lower_gpu(llvm::Module& module, std::span<const launch_site> launches, const lowering_target& target);
// A workgroup becomes loops over its work items (host.cpp); entries get the host's ABI.
void lower_host(llvm::Module& module, std::span<const launch_site> launches, const lowering_target& target);

}  // namespace kiln::spirv
