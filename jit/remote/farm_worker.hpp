// A worker of the build farm. It takes jobs from the queue, fetches their inputs, runs them and stores their results.
// Any number of workers on any number of machines share one queue. A worker that vanishes loses its lease, and another
// worker takes over its job.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>

#include "ir/error.hpp"
#include "jit/remote/farm_job.hpp"
#include "jit/remote/redis_address.hpp"

namespace kiln {

// What happened to a job, for messages. `outcome` is "done", "repeated", "differs", "unknown", "retry", "dead" or
// "ignored" (farm_queue.hpp).
struct worker_event {
  std::string outcome, id, label, message;
  double ms = 0;
};

struct farm_worker_options {
  redis_address address;
  std::string version;                               // compiler_version(): only jobs of this version are taken
  int jobs = 1;                                      // number of jobs to run at the same time
  std::chrono::milliseconds lease{30000};            // a job whose lease is not renewed for this long is given away
  std::chrono::seconds keep{7 * 24 * 3600};          // how long results are kept on the server
  int max_failures = 3, max_lost = 5;                // failures or vanished workers after which a job is dead
  std::uint64_t max_bytes = std::uint64_t{1} << 30;  // of a result, and of all inputs that are fetched from the server
  std::vector<std::filesystem::path> shared_roots;   // inputs on shared storage are read below these folders only
  std::filesystem::path scratch;                     // the folders of jobs are created here
  bool drain = false;                                // end when the queue is empty
  // Called before anything is fetched for a job. Throws if this worker refuses the job.
  std::function<void(const farm_job& job)> check = nullptr;
  // Runs the job whose inputs are in `folder` and returns the path of its result, a file in that folder. Throws error.
  // Called from several threads, one job per thread.
  std::function<std::filesystem::path(const farm_job& job, const std::filesystem::path& folder)> perform;
  std::function<void(const worker_event&)> report = nullptr;  // called from the worker threads, one call at a time
};

struct worker_totals {
  std::uint64_t done = 0, repeated = 0, failed = 0;
};

// Runs until `stop` is requested (jobs in progress are finished first) or, with `drain`, until the queue is empty. If
// the server cannot be reached, its queue is damaged or its answers are invalid, the worker retries without limit, with
// growing pauses and a single warning. With `drain` it retries for one lease (at least 5 s) and then throws the error.
// Throws error{usage, unsupported} if the server rejects the login or is too old. An invalid item of the queue is
// marked dead and never ends a worker.
worker_totals run_farm_worker(const farm_worker_options& options, std::stop_token stop);

// Whether retrying a job that failed with this kind of error can help. False for errors about the model or its options.
bool may_be_retried(error_kind kind);

}  // namespace kiln
