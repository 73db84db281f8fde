// How many arithmetic operations each launch of a profile does, for the roofline of `perf --html`.
#pragma once

#include <nlohmann/json.hpp>

#include "ir/program.hpp"
#include "tools/worker_choice.hpp"

namespace kiln::tools {

// Gives each row of perf's `per_kernel` the key `operations`. `bound` is the portable program with its sizes; rows
// belong to its kernels by their symbols and origins, in order. Null for a row whose kernel has no portable form, or
// sizes that do not follow from its inputs and outputs. The kernels' texts are made by workers, unless `workers` says
// otherwise.
void add_operations(nlohmann::ordered_json& per_kernel, const program& bound, const worker_choice& workers);

}  // namespace kiln::tools
