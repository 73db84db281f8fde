// A worker of the build farm: takes jobs from the queue, fetches their inputs, has them done, and stores their results.
// Any number of workers on any number of machines share one queue; a worker that vanishes loses its lease, and another
// one does its job.
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

// What happened to a job, for people: "done", "repeated", "differs", "unknown", "retry", "dead" or "ignored"
// (farm_queue.hpp).
struct worker_event {
  std::string outcome, id, label, message;
  double ms = 0;
};

struct worker_options {
  redis_address address;
  std::string version;                               // compiler_version(): only jobs of this version are taken
  int jobs = 1;                                      // at once
  std::chrono::milliseconds lease{30000};            // after so long without a sign of life a job is somebody else's
  std::chrono::seconds keep{7 * 24 * 3600};          // results
  int max_failures = 3, max_lost = 5;                // after which a job is dead
  std::uint64_t max_bytes = std::uint64_t{1} << 30;  // of a result, and of all inputs that are fetched from the server
  std::vector<std::filesystem::path> shared_roots;   // inputs that are not sent are read below these folders only
  std::filesystem::path scratch;                     // a folder for folders of jobs
  bool drain = false;                                // end when the queue is empty
  // Throws for a job that this worker does not do, before anything is fetched for it.
  std::function<void(const farm_job& job)> check = nullptr;
  // Does the job whose inputs lie in `folder` and returns its result, a file in that folder. Throws error; one job per
  // thread.
  std::function<std::filesystem::path(const farm_job& job, const std::filesystem::path& folder)> perform;
  std::function<void(const worker_event&)> report = nullptr;  // from the working threads, one at a time
};

struct worker_totals {
  std::uint64_t done = 0, repeated = 0, failed = 0;
};

// Works until `stop` is requested (jobs in hand are finished first) or, with `drain`, until nothing is left. A server
// that cannot be reached, whose queue is damaged, or that answers with nonsense is asked again, with growing pauses and
// one warning, for as long as that takes; with `drain` for one lease (at least 5 s), after which its error is thrown.
// Throws error{usage, unsupported} where the server does not let us in or is too old. A bad item of the queue is marked
// dead and never ends a worker.
worker_totals run_farm_worker(const worker_options& options, std::stop_token stop);

// Whether another try can end differently: false for what the compiler says about the model.
bool may_be_retried(error_kind kind);

}  // namespace kiln
