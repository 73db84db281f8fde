// What a program launches, as a hash: its structure, shapes, native kernels and small constants (trip counts, say).
// Weights are not in it, for no time depends on them. What is found out about graph replay is kept under it, so other
// kernels (tuned anew, or made by another compiler) are found out about anew.
#pragma once

#include <string>

#include "ir/program.hpp"

namespace kiln {

// Hexadecimal. `native` is what compile_bytecode returned.
std::string launched_program_hash(const program& native);

}  // namespace kiln
