#include "jit/targets.hpp"
#include "mlir_bridge/target_instructions.hpp"
#include "tools/command.hpp"

namespace kiln::tools {

namespace {

using json = nlohmann::ordered_json;

json document_of(const target_row& row) {
  json document{{"name", row.name},
                {"family", enum_name(row.family)},
                {"processor", row.processor},
                {"features", row.features},
                {"vector_bits", row.vector_bits},
                {"runs_here", runs_here(row)},
                {"products", row.products},
                {"source", row.source}};
  if (row.family == target_family::cpu) return document;
  const gpu_row& gpu = row.gpu;
  document.update({{"wave", gpu.wave},
                   {"lds_bytes", gpu.lds_bytes},
                   {"registers", gpu.registers},
                   {"compute_units", gpu.compute_units},
                   {"matrix_unit", enum_name(gpu.matrix)},
                   {"matrix_instructions", matrix_instructions_of(row)},
                   {"dot_products", enum_name(gpu.dots)},
                   {"async_copy", gpu.async_copy},
                   {"tensor_copy", gpu.tensor_copy},
                   {"dependent_launch", gpu.dependent_launch}});
  return document;
}

}  // namespace

action declare_targets(CLI::App&) {
  return [](const output_options& output) {
    auto document = nlohmann::ordered_json::array();
    for (const target_row& row : targets()) document.push_back(document_of(row));
    document.push_back(document_of(native_target()));
    output.print({{"targets", document}}, [&] {
      for (const auto& row : document)
        print("{:<15} {:<7} {:<16} {} bit vectors{}\n", row["name"].get<std::string>(),
              row["family"].get<std::string>(), row["processor"].get<std::string>(), row["vector_bits"].get<int>(),
              row["runs_here"].get<bool>() ? "" : "  (not this machine)");
    });
    return 0;
  };
}

}  // namespace kiln::tools
