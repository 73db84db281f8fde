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

// Compiles the files and returns the operators that they declare, in order. Clang's diagnostics are printed to standard
// error with file, line and caret. Throws error{invalid_model} for a source that does not compile or declares no
// operator.
std::vector<spirv::object> compile_custom_ops(const custom_op_choice& choice);

}  // namespace kiln::tools
