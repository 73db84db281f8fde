// The file that `kiln perf --trace` writes, for https://ui.perfetto.dev and chrome://tracing: JSON in Chrome's trace
// event format, with a lane for each kind of kernel and a counter of the memory in use.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

namespace kiln::tools {

// `document` is perf's JSON (with `per_kernel`). Launches follow one another, each as long as its mean. Throws
// error{io}.
void write_launch_trace(const std::filesystem::path& file, const nlohmann::ordered_json& document);

}  // namespace kiln::tools
