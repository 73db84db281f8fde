// Counts that several commands report about a program.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/program.hpp"

namespace kiln::tools {

// How a kernel with open dimensions is compiled.
struct open_kernel_summary {
  std::string rows;          // what it counts as rows if it serves any number of them (ir/independent_rows.hpp), or ""
  bool static_rows = false;  // its rows have no other open dims
  bool all_sizes = false;    // it can be compiled for all sizes (ir/open_form.hpp)
  std::string missing;       // else the operation that has no code for all sizes, "" if the file does not say
  bool compiled_once() const { return all_sizes || static_rows; }
  // The same on GPUs, which have no kernels for any number of rows.
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
  std::map<std::string, open_kernel_summary> open_kernels;  // by payload
  // Kernels that are not compiled once, counted by the operation that is missing.
  std::map<std::string, std::size_t> missing_forms() const;
  std::map<std::string, std::size_t> gpu_missing_forms() const;
};

model_summary summarize(const program& p);

}  // namespace kiln::tools
