#include "tools/custom_ops.hpp"

#include <fmt/format.h>

#include "ir/error.hpp"
#include "spirv/hip/hip_compiler.hpp"
#include "tools/terminal.hpp"

namespace kiln::tools {

void add_custom_op_option(CLI::App& app, std::vector<std::string>& files) {
  app.add_option("--custom-op", files, "HIP C++ source of a custom operator, see docs/custom_ops.md");
}

std::vector<spirv::object> compile_custom_ops(const std::vector<std::string>& files) {
  std::vector<spirv::object> result;
  for (const std::string& file : files) {
    try {
      auto compiled = spirv::compile_hip_file(file, {.whole_module = false});
      print_lines(stderr, compiled.warnings);
      if (compiled.operators.empty()) throw error(error_kind::invalid_model, fmt::format("{}: declares no operator: KILN_OPERATOR is missing", file));
      for (spirv::object& o : compiled.operators) result.push_back(std::move(o));
    } catch (const spirv::source_error& e) {
      print_lines(stderr, e.diagnostics());
      throw;
    }
  }
  return result;
}

}  // namespace kiln::tools
