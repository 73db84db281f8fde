// Serializes what a forked copy of this process returns after compiling: the compiled source, or the error that
// compiling threw. Used only between a process and its forked copy, so the bytes are not a stable format.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "spirv/hip/compiled_source.hpp"

namespace kiln::spirv {

// Never throws: an error is serialized, too.
std::string pack_answer(const std::function<compiled_source()>& compile);

// Returns the source, or throws the error.
compiled_source unpack_answer(std::string_view answer);

}  // namespace kiln::spirv
