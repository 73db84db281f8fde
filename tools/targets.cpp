#include <fmt/format.h>

#include "jit/targets.hpp"
#include "tools/command.hpp"

namespace kiln::tools {

action declare_targets(CLI::App&) {
  return [](const output_options& output) {
    auto document = nlohmann::ordered_json::array();
    auto describe_row = [&](const target_row& row) {
      document.push_back({{"name", row.name},
                          {"family", enum_name(row.family)},
                          {"processor", row.processor},
                          {"vector_bits", row.vector_bits},
                          {"runs_here", runs_here(row)}});
    };
    for (const target_row& row : targets()) describe_row(row);
    describe_row(native_target());
    output.print({{"targets", document}}, [&] {
      for (const auto& row : document)
        print("{:<12} {:<7} {:<16} {} bit vectors{}\n", row["name"].get<std::string>(),
              row["family"].get<std::string>(), row["processor"].get<std::string>(), row["vector_bits"].get<int>(),
              row["runs_here"].get<bool>() ? "" : "  (not this machine)");
    });
    return 0;
  };
}

}  // namespace kiln::tools
