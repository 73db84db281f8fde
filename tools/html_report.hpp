// The page that `kiln perf --html` writes: figures, every run's time in order, their distribution, and where the time
// goes by kernel. One file, no scripts, no references to anything outside it.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

namespace kiln::tools {

// `document` is perf's JSON (with `per_kernel`), `runs_ms` the time of each measured run in order. Throws error{io}.
void write_html_report(const std::filesystem::path& file, const nlohmann::ordered_json& document,
                       const std::vector<double>& runs_ms);

}  // namespace kiln::tools
