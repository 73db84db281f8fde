// Files of native kernels, which run without a compiler.
#pragma once

#include <string>

#include "ir/program.hpp"
#include "jit/compile_bytecode.hpp"
#include "tools/model_options.hpp"

namespace kiln::tools {

// Finalizes the kernels of a program with open dims so that they serve all sizes. Throws error{unsupported} naming a
// kernel that serves only one set of sizes, and what compile_bytecode throws.
program finalize_for_all_sizes(const program& open, const jit_options& jit, jit_report& report);

// Writes a signed `.kiln`, or warns that there is no key to sign it with.
void write_native_file(const program& native, const std::string& path, const cache_choice& cache);

}  // namespace kiln::tools
