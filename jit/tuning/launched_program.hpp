// A hash of what a program launches: its structure, shapes, native kernels and small constants (for example trip
// counts). Weights are left out, because no timing depends on them. The graph replay decision is stored under this
// hash, so it is measured again when kernels change (after tuning, or with another compiler).
#pragma once

#include <string>

#include "ir/program.hpp"

namespace kiln {

// Returns hexadecimal digits. `native` is the program that compile_bytecode returned.
std::string launched_program_hash(const program& native);

}  // namespace kiln
