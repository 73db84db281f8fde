// `kiln perf --sweep`: measures a model at several sizes of one open dimension, in one session.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/opened_model.hpp"

namespace kiln::tools {

// Sizes of a dimension, in the order in which they are measured.
struct size_sweep {
  std::string dimension;
  std::vector<std::int64_t> sizes;
};

// Parses NAME=MIN:MAX (MIN, the powers of two between them, MAX) or NAME=N,N,... Throws error{usage}.
size_sweep parse_sweep(const std::string& text);

// Returns `options` with the size as a --dim.
model_options at_size(model_options options, const size_sweep& sweep, std::int64_t size);

// Measures `runs` runs at each size, after `warmup` others. `model` has been opened at the first size. Returns
// {dimension, sizes: [{size, finalize_ms, compiled, first_run_ms, p50_ms, p90_ms, p99_ms, min_ms}]}; `compiled` counts
// the kernels that the cache lacked. Throws what opening and runs throw.
nlohmann::ordered_json measure_sizes(opened_model& model, const model_options& options, const size_sweep& sweep,
                                     int runs, int warmup);

// Prints that object as a table.
void print_sizes(const nlohmann::ordered_json& sweep);

}  // namespace kiln::tools
