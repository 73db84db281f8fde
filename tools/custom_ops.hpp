// --custom-op: HIP C++ sources of operators, for the commands that import models.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "spirv/object.hpp"

namespace kiln::tools {

struct custom_op_choice {
  std::vector<std::string> files;
  std::string include_root;  // spirv::hip_options::include_root
};

void add_include_root_option(CLI::App& app, std::string& folder);
void add_custom_op_options(CLI::App& app, custom_op_choice& choice);

// The operators that the files declare, in order. Prints Clang's diagnostics on standard error, with file, line and
// caret, before a mistake is thrown as error{invalid_model}; error{usage} for a file that declares none.
std::vector<spirv::object> compile_custom_ops(const custom_op_choice& choice);

}  // namespace kiln::tools
