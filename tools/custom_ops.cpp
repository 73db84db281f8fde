#include "tools/custom_ops.hpp"

#include <fmt/format.h>

#include "ir/error.hpp"
#include "spirv/hip/hip_compiler.hpp"
#include "tools/terminal.hpp"

namespace kiln::tools {

void add_include_root_option(CLI::App& app, std::string& folder) {
  app.add_option("--include-root", folder,
                 "#include may read only files below this folder (default: the folder of the HIP source)")
      ->check(CLI::ExistingDirectory);
}

void add_custom_op_options(CLI::App& app, custom_op_choice& choice) {
  app.add_option("--custom-op", choice.files, "HIP C++ source of a custom operator, see docs/custom_ops.md");
  add_include_root_option(app, choice.include_root);
}

std::vector<spirv::object> compile_custom_ops(const custom_op_choice& choice) {
  std::vector<spirv::object> result;
  for (const std::string& file : choice.files) {
    try {
      auto compiled = spirv::compile_hip_file(file, {.whole_module = false, .include_root = choice.include_root});
      print_lines(stderr, compiled.warnings);
      if (compiled.operators.empty())
        throw error(error_kind::invalid_model, fmt::format("{}: declares no operator: add a KILN_OPERATOR", file));
      for (spirv::object& o : compiled.operators) result.push_back(std::move(o));
    } catch (const spirv::source_error& e) {
      print_lines(stderr, e.diagnostics());
      throw;
    }
  }
  return result;
}

}  // namespace kiln::tools
