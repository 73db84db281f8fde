// A file that is open for use, as the C interface sees it: a native one, which the runtime loads itself
// (open_native), or a portable one, which libkiln.so opens with the compiler (compiler_library.hpp).
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "ir/program.hpp"
#include "ir/trust/native_consent.hpp"
#include "runtime/executable.hpp"
#include "runtime/host_allocator.hpp"
#include "runtime/kiln.h"
#include "runtime/model_runner.hpp"

namespace kiln {

// kiln_open_options with owners for what it points to.
struct model_request {
  std::filesystem::path file;
  std::string device = "host";
  unsigned threads = 0;
  std::string trusted_keys;  // empty: the user's
  bool allow_unsigned = false;
  std::string cache_folder;  // empty: the user's
  bool no_cache = false, only_cached = false;
  std::string compile_worker;  // empty: beside libkiln.so
  std::size_t most_instances = 8;
  // A value of kiln_tuning.
  int tuning = 0;
  double tuning_seconds = 30;
  // A value of kiln_specialization.
  int specialization = 0;
  std::function<void(std::size_t done, std::size_t total)> progress = nullptr;
  std::function<void(const std::string&)> warn = nullptr;
  host_allocator allocator = {};
};

// A model at one set of sizes, loaded. Any thread.
class loaded_model {
 public:
  virtual ~loaded_model() = default;
  virtual const kiln::executable& executable() const = 0;
  // Returns a runner for one caller. It must not outlive this object.
  virtual std::unique_ptr<model_runner> runner(graph_policy policy) const {
    return make_runner(executable(), {.policy = policy});
  }
  // Returns the state of the background tuner; zeros if there is none.
  virtual kiln_tuning_info tuning() const { return {}; }
  // The error that ended tuning, or "".
  virtual std::string tuning_problem() const { return {}; }
};

// Any thread. What at() gives must not outlive it.
class model_source {
 public:
  virtual ~model_source() = default;
  virtual const std::map<std::string, dim_range>& symbols() const = 0;
  virtual std::shared_ptr<const loaded_model> at(const dim_bindings& sizes) = 0;
  // Adds the sizes that data decide (ir/size_resolver.hpp), for a model that has some.
  virtual void add_data_sizes(dim_bindings& sizes, const std::map<std::string, literal>& inputs) = 0;
};

native_consent consent_of(const model_request& request);

// `source` is native, and the file of the request.
std::unique_ptr<model_source> open_native(const program& source, const model_request& request);

}  // namespace kiln
