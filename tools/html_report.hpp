// The page that `kiln perf --html` writes: figures, the time of every run in order, their distribution, the launches of
// a run over time with the memory in use, and a table of them. It is a single file without scripts and without
// references to other files.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

namespace kiln::tools {

// `document` is perf's JSON (with `per_kernel`), `runs_ms` the time of each measured run in order. Throws error{io}.
void write_html_report(const std::filesystem::path& file, const nlohmann::ordered_json& document,
                       const std::vector<double>& runs_ms);

}  // namespace kiln::tools
