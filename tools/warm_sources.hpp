// What `kiln warm` is asked to warm: files with targets and dimensions, from the command line, a list, or a log of
// misses; read into one plan.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "ir/trust/native_consent.hpp"
#include "jit/warm/warm.hpp"
#include "tools/chosen_device.hpp"

namespace kiln::tools {

struct warm_request {
  std::vector<std::string> files, targets, dims;
  std::string device, manifest, replay;
  native_consent consent;  // for files that hold native code
};

// What could not be warmed; the rest goes on.
struct warm_failure {
  std::string file;
  error_kind kind{};
  std::string message;
};

struct warm_sources {
  std::vector<std::string> files;  // kernels refer to them by number
  warm_plan plan;
  std::vector<warm_failure> failures;
  std::unique_ptr<chosen_device> device;                        // where one was named
  std::vector<std::pair<std::size_t, dim_bindings>> on_device;  // files, bound in one way, that the device will load
};

// Reads the files on as many threads. Throws error{usage} for what makes no sense, {absent} for a device that is not
// here; a file that cannot be read is a failure.
warm_sources collect_sources(const warm_request& request, int threads, std::stop_token stop);

}  // namespace kiln::tools
