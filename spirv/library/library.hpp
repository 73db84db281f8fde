// Our own kernels in amdgcnspirv. They are compiled from this folder's HIP sources when Kiln is built, and embedded in
// the program. Kernels in domain "" are ONNX operators that the importer uses if it has no handler. Kernels in domain
// "kiln" are building blocks for code that creates code objects.
#pragma once

#include <string_view>
#include <vector>

#include "spirv/object.hpp"

namespace kiln::spirv {

// Returns all kernels in the order of the sources. They are read once, on the first call. Any thread may call.
const std::vector<object>& library();

// The format of the build step's output: the serialized objects one after another, each preceded by its length (8
// bytes, little-endian).
std::vector<object> unpack_library(std::span<const std::byte> bytes);
std::vector<std::byte> pack_library(std::span<const object> objects);

}  // namespace kiln::spirv
