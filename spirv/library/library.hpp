// Our own kernels in amdgcnspirv, compiled from this folder's HIP sources when Kiln is built and carried inside the
// program. Those of domain "" are ONNX operators that the importer uses where it has no other way; the rest, of domain
// "kiln", are for whoever makes code objects.
#pragma once

#include <string_view>
#include <vector>

#include "spirv/object.hpp"

namespace kiln::spirv {

// All of them, in the order of the sources. Read once, on the first call; any thread may call.
const std::vector<object>& library();

// The serialized objects one after another, each with its length before it (8 bytes, little-endian): how the build step
// hands them over.
std::vector<object> unpack_library(std::span<const std::byte> bytes);
std::vector<std::byte> pack_library(std::span<const object> objects);

}  // namespace kiln::spirv
