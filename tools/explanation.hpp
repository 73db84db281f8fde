// The report of `kiln compile --explain`: the rewrites that fired, those that were refused, and why neighbouring
// operations are in different kernels; as text and as JSON.
#pragma once

#include <vector>

#include "aot/kernels/boundaries.hpp"
#include "aot/rewrite_log.hpp"
#include "tools/command.hpp"

namespace kiln::tools {

struct explanation {
  rewrite_log log;
  std::vector<kernel_boundary> boundaries;
};

nlohmann::ordered_json describe(const explanation& e);
void print_explanation(const explanation& e);

}  // namespace kiln::tools
