// Programs without their weights, as `kiln compile --strip-weights` writes them: the same kernels, shapes and
// structure, but every constant is zero. Pure; any thread.
#pragma once

#include <filesystem>
#include <string>

#include "ir/program.hpp"

namespace kiln {

// The entry of program::metadata that marks such a program. Its value is the options that the program was compiled
// with, as JSON, so that the same model with other weights can be compiled in the same way.
inline constexpr const char* stripped_weights_key = "stripped_weights";

// A copy of the program whose constants are zero. The copy shares one tensor of zeros, as large as the largest
// constant.
program without_weights(const program& p);

// Compares everything but the contents of constants and the metadata: the modules, their shapes and kernels, the
// symbols and guards. Returns the first difference in words ("'...' was '...'"), or nothing if there is none.
std::string structural_difference(const program& stripped, const program& other);

// Throws error{unsupported} if the program has no weights: for whoever is going to run it.
void require_weights(const program& p, const std::filesystem::path& file);

}  // namespace kiln
