#include <fmt/format.h>

#include "aot/onnx/import.hpp"
#include "tools/command.hpp"

namespace kiln::tools {

action declare_ops(CLI::App&) {
  return [](const output_options& output) {
    auto rows = nlohmann::ordered_json::array();
    for (const onnx_operator& o : supported_onnx_operators())
      rows.push_back({{"domain", o.domain},
                      {"name", o.name},
                      {"version", o.version},
                      {"min_opset", o.min_opset},
                      {"max_opset", o.max_opset},
                      {"notes", o.notes}});
    output.print({{"newest_opset", newest_onnx_opset()}, {"operators", rows}}, [&] {
      for (const auto& r : rows)
        print("{:<28} opset {:>2} to {:>2}  {}\n",
              (r["domain"].get<std::string>().empty() ? "" : r["domain"].get<std::string>() + ".") +
                  r["name"].get<std::string>(),
              r["min_opset"].get<int>(), r["max_opset"].get<int>(), r["notes"].get<std::string>());
      print("{} operators\n", rows.size());
    });
    return 0;
  };
}

}  // namespace kiln::tools
