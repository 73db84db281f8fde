// A GPU driver's library, opened at run time: which of them is here, its functions, and its words for errors. One
// binary runs with either, both or none installed. The library stays loaded: drivers have threads and exit handlers of
// their own. Any thread; immutable once opened.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/error.hpp"
#include "runtime/gpu/driver_functions.hpp"

namespace kiln::gpu {

enum class api { cuda, hip };

// "cuda", "hip": also the prefix of device names.
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
  const std::string& path() const { return path_; }  // the name it was opened by
  int version() const { return version_; }           // CUDA: 12080 is 12.8; HIP: 60342134 is 6.3.42134
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

// One library that was looked for.
struct search_result {
  std::string library;
  bool found = false;  // it is here and usable
  std::string
      outcome;  // "CUDA driver 12.8, 1 device", "not found", "lacks hipMallocAsync", "hipInit: hipErrorNoDevice"
};

struct driver_search {
  api which;
  std::shared_ptr<const gpu_driver> driver;  // null when none is usable
  std::vector<search_result> searched;       // in the order of the search, which ends with the first usable one
};

// Looks in the places where the driver's library usually is, or only at `path`. Never throws for what it does not find.
driver_search find_driver(api which, const std::string& path = {});

// One line for messages: what was looked for and what came of it.
std::string explain(const driver_search& search);

// What a status of the driver means to us.
struct status_meaning {
  error_kind kind = error_kind::internal;
  bool lost = false;  // nothing can be done with the device (its context) any more
  std::string_view text = {};
};
status_meaning meaning_of(int status);

inline constexpr int status_ok = 0, status_out_of_memory = 2, status_not_ready = 600, status_not_supported = 801;

}  // namespace kiln::gpu
