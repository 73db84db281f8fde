// The page that `kiln inspect --html` writes: what is in the file, the graph of its kernels, what was fused into each,
// a table of the kernels, and the memory of intermediate values. It is a single file without scripts and without
// references to other files.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/layered_graph.hpp"
#include "tools/program_graph.hpp"

namespace kiln::tools {

struct inspect_page {
  const nlohmann::ordered_json& document;                      // of `kiln inspect --json`
  std::vector<std::pair<std::string, layered_graph>> modules;  // name and drawing
  std::map<std::string, std::string> kernels;                  // hash to printed form, where there is one
  std::optional<memory_plan> memory;                           // of the main module
  std::string memory_note;                                     // why there is no plan, or for which sizes it is
};

// Throws error{io}.
void write_inspect_page(const std::filesystem::path& file, const inspect_page& page);

}  // namespace kiln::tools
