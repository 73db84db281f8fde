// The alternative to finalize_spirv on a machine with ROCm: HIP 6.4 and later compile amdgcnspirv themselves. What comes back is a candidate like
// any other for AMD GPUs: a native kernel whose object is an offload bundle, to be loaded, checked and timed beside ours. Any thread.
//
// A native kernel is launched with pointers only (ir/native_kernel.hpp), while constants that ours carries inside are parameters there: there is
// a candidate only for objects whose kernels take nothing but buffers.
#pragma once

#include <optional>
#include <span>

#include "ir/native_kernel.hpp"
#include "ir/shape.hpp"
#include "mlir_bridge/target_row.hpp"

namespace kiln {

// The first HIP (HIP_VERSION's major and minor) whose runtime reads such objects.
inline constexpr int rocm_spirv_major = 6, rocm_spirv_minor = 4;

// None for targets of other families and for kernels with parameters by value. Throws as finalize_spirv does where the payload or its rules are wrong.
std::optional<native_kernel> rocm_candidate(std::span<const std::byte> payload, std::span<const shape> inputs, std::span<const shape> outputs, const target_row& target);

}  // namespace kiln
