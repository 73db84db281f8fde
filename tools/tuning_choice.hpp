// Parses --tune, --tune-budget and the options of `kiln tune`, and holds what run, perf and tune share.
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

// --tune-budget in milliseconds; 30 s by default.
double tuning_budget_ms(const model_options& options);

// The device to time on. For a GPU it is the session's device. For the host it is a second host device, because a
// candidate that never finishes occupies its threads.
std::shared_ptr<device> timing_device(model_session& session);

// How many kernels of the session are tuned, according to its records: the object "tuning" of run's and perf's JSON.
nlohmann::ordered_json describe_tuning(const model_session& session);

// The row of `kiln tune` for one kernel.
nlohmann::ordered_json describe(const kernel_tuning& t);

// Tunes in this thread, with all processors. For use when no model runs at the same time.
std::vector<kernel_tuning> tune_session(model_session& session, const tuner_options& options, double budget_ms,
                                        const output_options& output);

}  // namespace kiln::tools
