// Measures a model before, during and after its kernels are tuned in the background, for `kiln perf --tune`.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/opened_model.hpp"

namespace kiln::tools {

// Returns the object "tuning" of perf's JSON, with the median and the 99th percentile of each phase: `runs` runs
// before, as many as fit during tuning, and `runs` afterwards. `opened` continues with the tuned executable.
nlohmann::ordered_json measure_tiers(opened_model& opened, int runs, int warmup);

// Prints the object "tuning" as one line of text.
void print_tiers(const nlohmann::ordered_json& tuning);

}  // namespace kiln::tools
