// Counts that several commands report about a program.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/program.hpp"

namespace kiln::tools {

struct model_summary {
  std::size_t kernels = 0;       // distinct payloads
  std::size_t code_objects = 0;  // instructions that run a kernel
  std::size_t interpreted = 0;   // instructions that only the reference interpreter could run
  std::size_t aliases = 0;       // reshapes: no work at run time
  std::size_t native = 0;        // code objects that are native already
  std::map<std::string, std::size_t> operators;
  // Kernels with open dimensions, by payload: what they count as rows if they serve any number of them
  // (ir/independent_rows.hpp), empty if they are compiled for each set of sizes.
  std::map<std::string, std::string> open_kernels;
};

model_summary summarize(const program& p);

}  // namespace kiln::tools
