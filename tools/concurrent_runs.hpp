// Measures a model with several callers at once, each with tensors and an execution context of its own, for
// `kiln perf --concurrency`.
#pragma once

#include <nlohmann/json.hpp>

#include "runtime/executable.hpp"

namespace kiln::tools {

// When a measurement is complete: after so many runs, and not before so much time has passed.
struct run_goal {
  int runs = 1;
  double ms = 0;
  bool reached(std::size_t done, double elapsed_ms) const {
    return done >= static_cast<std::size_t>(runs) && elapsed_ms >= ms;
  }
};

// Returns {streams, runs, runs_per_second, p50_ms, p90_ms, p99_ms, max_ms} over the runs of all callers. Each caller
// makes `warmup` runs, waits for the others, and runs until the goal is reached. Throws what a run throws.
nlohmann::ordered_json measure_concurrently(const executable& exe, const graph_options& graphs,
                                            std::span<const literal> inputs, int streams, int warmup,
                                            const run_goal& goal);

// Prints that object as one line of text.
void print_concurrency(const nlohmann::ordered_json& concurrency);

}  // namespace kiln::tools
