// What --tune, --tune-budget and the options of `kiln tune` say, and what run, perf and tune share of it.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "jit/tuning/tuner.hpp"
#include "tools/model_session.hpp"

namespace kiln::tools {

// "500ms", "30s", "2m", "1h", or seconds without a unit. Throws error{usage}.
double parse_duration_ms(const std::string& text, const char* option);

tuning_effort parse_effort(const std::string& text);

// --tune-budget, 30 s without it.
double tuning_budget_ms(const model_options& options);

// The device to time on: a GPU is the session's own, the host a second one, whose threads a candidate that never ends
// may keep.
std::shared_ptr<device> timing_device(model_session& session);

// How far the kernels of the session are tuned, by the records that it has: the object "tuning" of run's and perf's
// JSON.
nlohmann::ordered_json describe_tuning(const model_session& session);

// One row of `kiln tune` for each kernel.
nlohmann::ordered_json describe(const kernel_tuning& t);

// Tunes in this thread, with all processors: after a run, when nothing else is to be done.
std::vector<kernel_tuning> tune_session(model_session& session, const tuner_options& options, double budget_ms,
                                        const output_options& output);

}  // namespace kiln::tools
