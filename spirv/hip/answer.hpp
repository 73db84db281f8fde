// What a forked copy of this process says after compiling: the compiled source, or the error that compiling threw, as
// bytes. Only between a process and its copy: not a format.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "spirv/hip/compiled_source.hpp"

namespace kiln::spirv {

// Throws nothing: an error is an answer, too.
std::string pack_answer(const std::function<compiled_source()>& compile);

// Returns the source or throws the error.
compiled_source unpack_answer(std::string_view answer);

}  // namespace kiln::spirv
