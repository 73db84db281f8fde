// The alternative to finalize_spirv on a machine with ROCm: HIP 6.4 and later compile amdgcnspirv themselves. What
// comes back is a candidate like any other for AMD GPUs: a native kernel whose object is an offload bundle, to be
// loaded, checked and timed beside ours. Its configuration names the version of HIP that it was timed with, whose code
// it is. Any thread.
//
// A native kernel is launched with pointers only (ir/native_kernel.hpp): numbers that a kernel takes become constants
// of the module in the bundle.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ir/native_kernel.hpp"
#include "ir/shape.hpp"
#include "mlir_bridge/kernel/kernel_configuration.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

// HIP_VERSION of a HIP runtime ("6.4.43483" is 60443483) that compiles such objects; 0 for an older one and for what is
// no such version.
std::int64_t rocm_finalizer(std::string_view hip_version);

// The name in a configuration, and what it says: a version as above, 0 where our own finalizer is meant.
inline constexpr const char* rocm_choice = "rocm";
inline std::int64_t chosen_rocm(const kernel_configuration& configuration) {
  return choose(configuration, rocm_choice, 0);
}

// None for targets of other families, for workgroups of several dimensions (native launches are linear) and for kernels
// that are launched twice with different numbers. Throws as finalize_spirv does where the payload or its rules are
// wrong.
std::optional<native_kernel> rocm_candidate(std::span<const std::byte> payload, std::span<const shape> inputs,
                                            std::span<const shape> outputs, const target_row& target);

}  // namespace kiln
