// kiln_write_golden VERSION FOLDER: writes that version's golden kernels and, with the reference implementation, what
// they compute. Run once when a version is made; the files are then never written again.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "ir/error.hpp"
#include "ir/program.hpp"
#include "mlir_bridge/kernel/portable_kernel.hpp"
#include "test/compat/golden_kernels.hpp"
#include "test/mlir_bridge/kernel/sample_fusions.hpp"

int main(int count, char** arguments) {
  using namespace kiln;
  using namespace kiln::test;
  if (count != 3) return std::cerr << "usage: kiln_write_golden VERSION FOLDER\n", 2;
  try {
    std::filesystem::path folder = arguments[2];
    std::filesystem::create_directories(folder);
    compiler_context context;
    for (const auto& [name, bytes] : golden_kernels(std::stoi(arguments[1]))) {
      std::ofstream(folder / (name + ".mlirbc"), std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
      portable_kernel kernel = portable_kernel::parse(context, bytes);
      kernel.specialize(golden_input_shapes(kernel.input_shapes()));
      auto fusion = to_fusion(kernel);
      auto inputs = sample_inputs(*fusion);
      std::ofstream json(folder / (name + ".json"));
      auto list = [&](const char* key, const std::vector<literal>& tensors, const char* end) {
        json << "\"" << key << "\": [";
        for (std::size_t i = 0; i < tensors.size(); ++i) json << (i ? ",\n " : "\n ") << to_json(tensors[i]);
        json << "]" << end;
      };
      json << "{";
      list("inputs", inputs, ",\n");
      list("outputs", evaluate(*fusion, inputs), "}\n");
    }
  } catch (const std::exception& e) {
    return std::cerr << e.what() << "\n", 1;
  }
}
