// The results of tuning, as run, perf and tune print them.
#pragma once

#include <nlohmann/json.hpp>

#include "jit/tuning/tuner.hpp"
#include "tools/opened_model.hpp"

namespace kiln::tools {

// How far the kernels of the model are tuned, by the records that it has: the object "tuning" of run's and perf's
// JSON.
nlohmann::ordered_json describe_tuning(const opened_model& model);

// The row of `kiln tune` for one kernel.
nlohmann::ordered_json describe(const kernel_tuning& t);

}  // namespace kiln::tools
