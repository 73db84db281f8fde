// Counts that several commands report about a program.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/program.hpp"

namespace kiln::tools {

// How a kernel with open dimensions can be compiled.
struct open_kernel_summary {
  std::string rows;  // what it counts as rows if it serves any number of them (ir/independent_rows.hpp), or ""
  // Rows have no other open dims.
  bool static_rows = false;
  // The kernel can be compiled once for all sizes (ir/open_form.hpp).
  bool all_sizes = false;
  // If not, the operation that cannot be compiled for open sizes; "" if the file does not say.
  std::string missing;
  bool compiled_once() const { return all_sizes || static_rows; }
  // The same for GPUs, which do not support row kernels.
  bool gpu_all_sizes = false;
  std::string gpu_missing;
};

struct model_summary {
  std::size_t kernels = 0;       // distinct payloads
  std::size_t code_objects = 0;  // instructions that run a kernel
  std::size_t interpreted = 0;   // instructions that only the reference interpreter could run
  std::size_t aliases = 0;       // reshapes: no work at run time
  std::size_t native = 0;        // code objects that are native already
  std::map<std::string, std::size_t> operators;
  // Keyed by payload.
  std::map<std::string, open_kernel_summary> open_kernels;
  // Returns how many kernels cannot be compiled once, by the operation that prevents it.
  std::map<std::string, std::size_t> missing_forms() const;
  std::map<std::string, std::size_t> gpu_missing_forms() const;
};

model_summary summarize(const program& p);

}  // namespace kiln::tools
