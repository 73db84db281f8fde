// Which kernels in amdgcnspirv are Kiln's own (spirv/library). Those check what they are given and stay within their
// tensors. Every other kernel of that format was written by somebody in C++ and can address anything, so it counts as
// native code: a file with one needs a signature (container/signed_native.hpp).
//
// A kernel is known by its identity: a hash of everything that decides which addresses it computes, which is the whole
// object without the values of its attributes. Pure functions; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "ir/hash.hpp"

namespace kiln {

// Whether a payload is a kernel in amdgcnspirv, whatever a file says about its format.
bool is_hip_kernel(std::span<const std::byte> payload);

// Throws error{corrupted} if the payload is not a well-formed object (ir/spirv_object.fbs).
content_hash kernel_identity(std::span<const std::byte> payload);

// False for a payload that is not a well-formed object.
bool is_known_kernel(std::span<const std::byte> payload);

}  // namespace kiln
