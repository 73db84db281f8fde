// Runs of a model before, while and after its kernels are tuned in the background: what `kiln perf --tune` measures.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/model_session.hpp"

namespace kiln::tools {

// The object "tuning" of perf's JSON, with medians and 99th percentiles of each phase: `runs` runs before, as many as
// there is time for meanwhile, `runs` afterwards. The session goes on with the executable of the end.
nlohmann::ordered_json measure_tiers(model_session& session, const model_options& options, double budget_ms, int runs,
                                     int warmup);

// The object "tuning" as a line of text.
void print_tiers(const nlohmann::ordered_json& tuning);

}  // namespace kiln::tools
