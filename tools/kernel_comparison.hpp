// Compares each kernel of an opened model with the reference on its own, on the reference's inputs, so that a
// difference is found where it arises.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "jit/comparison.hpp"
#include "tools/opened_model.hpp"

namespace kiln::tools {

// A comparison as the commands print it.
nlohmann::ordered_json describe(const std::string& name, const comparison& c);

// A row for every output of every kernel that runs. `computed`: as for compare (jit/comparison.hpp).
nlohmann::ordered_json compare_kernels(const opened_model& model, exactness computed);

}  // namespace kiln::tools
