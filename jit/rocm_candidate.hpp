// The alternative to finalize_spirv on a machine with ROCm: HIP 6.4 and later compile amdgcnspirv themselves. The
// result is one more candidate for AMD GPUs: a native kernel whose object is an offload bundle, which is loaded,
// checked and timed like ours. Its configuration contains the version of HIP that it was timed with. May be called from
// any thread.
//
// Native kernels are launched with pointer arguments only (ir/native_kernel.hpp). Scalar arguments of a kernel become
// constants of the module in the bundle.
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

// The HIP_VERSION of a HIP runtime that compiles such objects ("6.4.43483" is 60443483); 0 if it is older or the text
// is not a version.
std::int64_t rocm_finalizer(std::string_view hip_version);

// The name of the setting in a configuration. Its value is a version as above, or 0 for our own finalizer.
inline constexpr const char* rocm_choice = "rocm";
inline std::int64_t chosen_rocm(const kernel_configuration& configuration) {
  return choose(configuration, rocm_choice, 0);
}

// Returns nothing for targets that are not AMD GPUs, for multi-dimensional workgroups (native launches are linear) and
// for kernels that are launched twice with different scalars. Throws like finalize_spirv if the payload or its rules
// are invalid.
std::optional<native_kernel> rocm_candidate(std::span<const std::byte> payload, std::span<const shape> inputs,
                                            std::span<const shape> outputs, const target_row& target);

}  // namespace kiln
