// Options of the C interface as C++ values, and files opened with them.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "runtime/kiln.h"
#include "runtime/model_interface.hpp"
#include "runtime/model_source.hpp"

namespace kiln::c_interface {

// KILN_OK, or fail() if the options contradict themselves. Null means all defaults.
kiln_status check(const kiln_open_options* options);
// The options with zeros for fields that the caller's version does not have.
kiln_open_options complete(const kiln_open_options* options);

// The options with owners for what they point to. Throws error{usage}.
model_request request_of(const char* path, const kiln_open_options& options);

struct open_result {
  model_interface described;
  std::shared_ptr<model_source> source;
};
// A file of native kernels needs no compiler.
open_result open_file(const char* path, const kiln_open_options& options);

dim_bindings sizes_of(const kiln_dim* dims, std::size_t count);

// Fills *info with dimension number `index`.
kiln_status describe(const std::map<std::string, dim_range>& symbols, std::size_t index, kiln_dim_info* info);

}  // namespace kiln::c_interface
