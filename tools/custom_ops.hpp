// --custom-op: HIP C++ sources of operators, for the commands that import models.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "spirv/object.hpp"

namespace kiln::tools {

void add_custom_op_option(CLI::App& app, std::vector<std::string>& files);

// The operators that the files declare, in order. Prints Clang's diagnostics on standard error, with file, line and caret, before a mistake is
// thrown as error{invalid_model}; error{usage} for a file that declares none.
std::vector<spirv::object> compile_custom_ops(const std::vector<std::string>& files);

}  // namespace kiln::tools
