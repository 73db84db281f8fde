// Collects what `kiln warm` should compile (files with targets and dimensions, from the command line, a list, or a log
// of misses) into one plan.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "ir/trust/native_consent.hpp"
#include "jit/warm/warm.hpp"
#include "session/chosen_device.hpp"

namespace kiln::tools {

struct warm_request {
  std::vector<std::string> files, targets, dims;
  std::string device, manifest, replay;
  native_consent consent;  // for files that contain native code
};

// A file or kernel that could not be warmed. The others continue.
struct warm_failure {
  std::string file;
  error_kind kind{};
  std::string message;
};

struct warm_sources {
  std::vector<std::string> files;  // warm_kernel::sources are indices into this list
  warm_plan plan;
  std::vector<warm_failure> failures;
  std::unique_ptr<chosen_device> device;  // null if --device was not given
  std::vector<std::pair<std::size_t, dim_bindings>>
      on_device;  // indices of files, and dimensions, to load on the device
};

// Reads the files on `threads` threads. Throws error{usage} for an invalid request, error{absent} if the device is not
// available. A file that cannot be read becomes a failure in the result.
warm_sources collect_sources(const warm_request& request, int threads, std::stop_token stop);

}  // namespace kiln::tools
