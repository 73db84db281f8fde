#include "jit/remote/farm_worker.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "ir/container/files.hpp"
#include "ir/invalid_shape.hpp"
#include "jit/remote/blob_store.hpp"
#include "jit/remote/farm_queue.hpp"
#include "jit/remote/job_folder.hpp"
#include "jit/remote/shared_file.hpp"

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;
// How long to wait for a job. It bounds how fast a request to stop is noticed.
constexpr std::chrono::milliseconds longest_wait{1000};
// Pauses between attempts while the server cannot be used.
constexpr std::chrono::milliseconds first_pause{100}, longest_pause{2000};
// Minimum time for which the delivery of a result is retried.
constexpr std::chrono::seconds least_patience{60};
constexpr std::chrono::milliseconds least_drain_patience{5000};
constexpr std::chrono::milliseconds least_call{2000};  // time limit of one call if the lease is shorter

// Errors about the model or its options. Retrying the job would give the same error.
constexpr std::array final_kinds{error_kind::usage,         error_kind::mismatch,
                                 error_kind::missing_file,  error_kind::truncated,
                                 error_kind::corrupted,     error_kind::newer_version,
                                 error_kind::invalid_model, error_kind::unsupported,
                                 error_kind::untrusted,     invalid_shape};

double milliseconds_since(clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(clock::now() - begin).count();
}

std::string unique_name() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("{}-{}-{:08x}", host.data(), getpid(), std::random_device{}());
}

// The time limit of one call is the lease, because after that the job is lost anyway.
redis_limits limits_of(const farm_worker_options& options, std::chrono::milliseconds patience, std::stop_token stop) {
  return {.call = std::max(options.lease, least_call), .patience = patience, .stop = std::move(stop)};
}

// How long a draining worker retries while the server cannot be used.
std::chrono::milliseconds drain_patience(const farm_worker_options& options) {
  return std::max(options.lease, least_drain_patience);
}

// How long the delivery of a result is retried while the server cannot be reached.
std::chrono::milliseconds delivery_patience(const farm_worker_options& options) {
  return options.drain ? drain_patience(options) : std::max<std::chrono::milliseconds>(options.lease, least_patience);
}

// Renews the lease of one job during its lifetime, from its own thread and over its own connection.
class heartbeat {
 public:
  heartbeat(const farm_worker_options& options, const std::string& worker, const std::string& entry)
      : thread_([&options, worker, entry](std::stop_token stop) {
          redis_client redis(options.address, limits_of(options, {}, stop));
          farm_queue queue(redis, options.version);
          std::mutex mutex;
          std::condition_variable_any changed;
          std::unique_lock lock(mutex);
          while (!changed.wait_for(lock, stop, options.lease / 3, [&] { return stop.stop_requested(); })) {
            try {
              if (!queue.renew(worker, entry)) return;  // another worker has the job now; our result is still accepted
            } catch (const error& e) {
              // Try again: the lease may last until the server is back.
              spdlog::debug("a lease could not be renewed: {}", e.what());
            }
          }
        }) {}

 private:
  std::jthread thread_;
};

class worker {
 public:
  worker(const farm_worker_options& options, std::stop_token stop, std::mutex& reporting, worker_totals& totals)
      : options_(options),
        stop_(stop),
        reporting_(reporting),
        totals_(totals),
        name_(unique_name()),
        redis_(options.address, limits_of(options, {}, stop)),
        waiting_(redis_, options.version),
        last_words_(options.address, limits_of(options, delivery_patience(options), {})),
        queue_(last_words_, options.version),
        blobs_(last_words_, options.keep) {}

  void run() {
    while (!stop_.stop_requested()) {
      const auto begin = clock::now();
      try {
        auto job = waiting_.take(name_, options_.lease, options_.max_lost, std::min(longest_wait, options_.lease / 2));
        if (job && job->refusal.empty()) work_on(*job);
        else if (job) note({"dead", job->id, "", job->refusal, 0});
        else if (options_.drain && waiting_.empty()) break;
        trouble_since_.reset();
      } catch (const error& e) {
        wait_after(e, begin);
      }
    }
    try {
      queue_.leave(name_);
    } catch (const error& e) {
      spdlog::debug("{}", e.what());
    }
  }

 private:
  // Pauses after the server could not be used. If this worker held a job, another worker gets it when the lease
  // expires.
  void wait_after(const error& e, clock::time_point begin) {
    if (e.kind() == error_kind::usage || e.kind() == error_kind::unsupported) throw e;
    if (!trouble_since_) {
      trouble_since_ = begin;
      pause_ = first_pause;
      if (!stop_.stop_requested()) spdlog::warn("{}; retrying until it answers", e.what());
    }
    if (options_.drain && clock::now() - *trouble_since_ >= drain_patience(options_)) throw e;
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock(mutex);
    changed.wait_for(lock, stop_, pause_, [] { return false; });
    pause_ = std::min(2 * pause_, longest_pause);
  }

  void work_on(const farm_lease& lease) {
    auto begin = clock::now();
    heartbeat alive(options_, name_, lease.entry);
    farm_job job;
    auto failed = [&](error_kind kind, const char* why) {
      note({queue_.fail(lease, name_, kind, why, !may_be_retried(kind), options_.max_failures), lease.id, job.label,
            why, milliseconds_since(begin)});
    };
    try {
      job = read_job(lease.spec);
      job_folder folder(options_.scratch);
      auto result = perform(job, folder.path());
      content_hash hash = blake3(result->bytes());
      blobs_.put(hash, result->bytes());
      double ms = milliseconds_since(begin);
      note({queue_.finish(lease, hash, result->bytes().size(), ms), lease.id, job.label, "", ms});
    } catch (const error& e) {
      if (e.kind() == error_kind::unreachable) throw;  // the farm's server; this says nothing about the job
      failed(e.kind(), e.what());
    } catch (const std::exception& e) {
      failed(error_kind::internal, e.what());
    }
  }

  std::shared_ptr<const container::mapped_file> perform(const farm_job& job, const std::filesystem::path& folder) {
    check(job);
    for (const farm_input& input : job.inputs) fetch(input, folder);
    std::filesystem::path file;
    try {
      file = options_.perform(job, folder);
    } catch (const error& e) {
      if (e.kind() == error_kind::unreachable)
        // Not the farm's server but one that the job needs.
        throw error(error_kind::compile_failed, e.what());
      throw;
    }
    std::error_code failed;
    if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(file, failed)))
      throw error(error_kind::compile_failed, "the job has left no file as its result");
    auto result = container::mapped_file::open(file);
    if (result->bytes().size() > options_.max_bytes)
      throw error(error_kind::unsupported,
                  fmt::format("the result has {} bytes, more than this worker's --max-bytes {}", result->bytes().size(),
                              options_.max_bytes));
    return result;
  }

  void check(const farm_job& job) {
    if (job.version != options_.version) throw error(error_kind::unsupported, "the job is for another version of Kiln");
    std::uint64_t left = options_.max_bytes;
    for (const farm_input& input : job.inputs) {
      if (!input.path.empty()) continue;
      if (input.bytes > left)
        throw error(
            error_kind::unsupported,
            fmt::format("the job's files have more bytes than this worker's --max-bytes {}", options_.max_bytes));
      left -= input.bytes;
    }
    if (options_.check) options_.check(job);
  }

  void fetch(const farm_input& input, const std::filesystem::path& folder) {
    auto to = folder / input.name;
    std::error_code failed;
    std::filesystem::create_directories(to.parent_path(), failed);
    if (input.path.empty()) blobs_.fetch(input.hash, input.bytes, to);
    else link_shared_file(input, to, options_.shared_roots, name_);
  }

  void note(const worker_event& event) {
    std::lock_guard lock(reporting_);
    if (event.outcome == "done") ++totals_.done;
    else if (event.message.empty()) ++totals_.repeated;
    else ++totals_.failed;
    if (options_.report) options_.report(event);
  }

  const farm_worker_options& options_;
  std::stop_token stop_;
  std::mutex& reporting_;
  worker_totals& totals_;
  std::string name_;
  std::optional<clock::time_point> trouble_since_;  // since when the server cannot be used
  std::chrono::milliseconds pause_{first_pause};
  redis_client redis_;  // asks for jobs; stops waiting when `stop` is requested
  farm_queue waiting_;
  redis_client last_words_;  // delivers results, also after `stop` was requested
  farm_queue queue_;
  blob_store blobs_;
};

}  // namespace

bool may_be_retried(error_kind kind) { return std::ranges::find(final_kinds, kind) == final_kinds.end(); }

worker_totals run_farm_worker(const farm_worker_options& options, std::stop_token stop) {
  sweep_job_folders(options.scratch);
  std::mutex reporting;
  worker_totals totals;
  std::exception_ptr first;
  std::stop_source ours;
  std::stop_callback forward(stop, [&] { ours.request_stop(); });
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < options.jobs; ++i)
      threads.emplace_back([&] {
        try {
          worker(options, ours.get_token(), reporting, totals).run();
        } catch (...) {
          std::lock_guard lock(reporting);
          if (!first) first = std::current_exception();
          ours.request_stop();
        }
      });
  }
  if (first) std::rethrow_exception(first);
  return totals;
}

}  // namespace kiln
