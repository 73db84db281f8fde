// A GPU driver library, opened at run time: its functions, its version and its error names. One binary works with
// either driver, both or none installed. The library is never unloaded, because drivers have threads and exit handlers
// of their own. Any thread; immutable once opened.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/error.hpp"
#include "runtime/gpu/driver_functions.hpp"

namespace kiln::gpu {

enum class api { cuda, hip };

// "cuda" or "hip", which is also the prefix of device names.
std::string_view name(api which);

struct attribute_numbers {
  int multiprocessors, memory_pools, shared_bytes;
};

class gpu_driver {
 public:
  gpu_driver(api which, const driver_functions& functions, std::string path)
      : which_(which), functions_(functions), path_(std::move(path)) {}

  api which() const { return which_; }
  const driver_functions& functions() const { return functions_; }
  const std::string& path() const { return path_; }  // the name that it was opened with
  int version() const { return version_; }           // CUDA: 12080 means 12.8; HIP: 60342134 means 6.3.42134
  std::string version_text() const;
  int device_count() const { return devices_; }
  const attribute_numbers& attributes() const;
  // "CUDA_ERROR_OUT_OF_MEMORY", "hipErrorOutOfMemory"
  std::string error_name(int status) const;

 private:
  friend struct driver_opening;
  api which_;
  driver_functions functions_;
  std::string path_;
  int version_ = 0, devices_ = 0;
};

// The result of looking for one library.
struct search_result {
  std::string library;
  bool found = false;  // found and usable
  // "CUDA driver 12.8, 1 device", "not found", "lacks hipMallocAsync", "hipInit: hipErrorNoDevice"
  std::string outcome;
};

struct driver_search {
  api which;
  std::shared_ptr<const gpu_driver> driver;  // null if none is usable
  std::vector<search_result> searched;       // in search order; the search ends with the first usable library
};

// Looks for the driver library in the usual places, or only at `path` if given. Does not throw if nothing is found.
driver_search find_driver(api which, const std::string& path = {});

// One line for messages: which libraries were looked for, and the result.
std::string explain(const driver_search& search);

// Classification of a driver status as a Kiln error.
struct status_meaning {
  error_kind kind = error_kind::internal;
  bool lost = false;  // the device (its context) is unusable from now on
  std::string_view text = {};
};
status_meaning meaning_of(int status);

inline constexpr int status_ok = 0, status_out_of_memory = 2, status_not_ready = 600, status_not_supported = 801;

}  // namespace kiln::gpu
