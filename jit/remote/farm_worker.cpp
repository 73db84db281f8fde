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
#include "jit/remote/blob_store.hpp"
#include "jit/remote/farm_queue.hpp"
#include "jit/remote/job_folder.hpp"

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds longest_wait{1000};  // for a job: how fast a request to stop is noticed
constexpr std::chrono::hours for_ever{24 * 365};
constexpr std::chrono::seconds least_patience{60};      // with a server that is away while a result is to be delivered

// What the compiler says about a model or its options, which it will say again.
constexpr std::array final_kinds{error_kind::usage, error_kind::mismatch, error_kind::missing_file, error_kind::truncated, error_kind::corrupted, error_kind::newer_version, error_kind::invalid_model, error_kind::unsupported};

double milliseconds_since(clock::time_point begin) { return std::chrono::duration<double, std::milli>(clock::now() - begin).count(); }

std::string unique_name() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("{}-{}-{:08x}", host.data(), getpid(), std::random_device{}());
}

// Renews the lease of one job from a thread and a connection of its own, as long as it lives.
class heartbeat {
 public:
  heartbeat(const worker_options& options, const std::string& worker, const std::string& entry)
      : thread_([&options, worker, entry](std::stop_token stop) {
          redis_client redis(options.address, {.stop = stop});
          farm_queue queue(redis, options.version);
          std::mutex mutex;
          std::condition_variable_any changed;
          std::unique_lock lock(mutex);
          while (!changed.wait_for(lock, stop, options.lease / 3, [&] { return stop.stop_requested(); })) {
            try {
              if (!queue.renew(worker, entry)) return;  // the job is somebody else's: its result is still welcome
            } catch (const error& e) {
              spdlog::debug("a lease is not renewed: {}", e.what());  // it may last until the server is back
            }
          }
        }) {}

 private:
  std::jthread thread_;
};

class worker {
 public:
  worker(const worker_options& options, std::stop_token stop, std::mutex& reporting, worker_totals& totals)
      : options_(options), stop_(stop), reporting_(reporting), totals_(totals), name_(unique_name()),
        redis_(options.address, {.patience = for_ever, .stop = stop}), waiting_(redis_, options.version), last_words_(options.address, {.patience = std::max<std::chrono::milliseconds>(options.lease, least_patience)}), queue_(last_words_, options.version),
        blobs_(last_words_, options.keep) {}

  void run() {
    while (!stop_.stop_requested()) {
      try {
        auto job = waiting_.take(name_, options_.lease, options_.max_lost, std::min(longest_wait, options_.lease / 2));
        if (job) work_on(*job);
        else if (options_.drain && waiting_.empty()) break;
      } catch (const error& e) {
        if (e.kind() != error_kind::absent) throw;
        spdlog::debug("{}", e.what());  // the server went away for long: the job, if any, is somebody's when it is back
      }
    }
    try {
      queue_.leave(name_);
    } catch (const error& e) {
      spdlog::debug("{}", e.what());
    }
  }

 private:
  void work_on(const farm_lease& lease) {
    auto begin = clock::now();
    heartbeat alive(options_, name_, lease.entry);
    farm_job job;
    std::optional<job_folder> folder;
    std::shared_ptr<const container::mapped_file> result;
    auto failed = [&](error_kind kind, const char* why) {
      note({queue_.fail(lease, name_, kind, why, !may_be_retried(kind), options_.max_failures), lease.id, job.label, why, milliseconds_since(begin)});
    };
    try {
      job = read_job(lease.spec);
      folder.emplace(options_.scratch);
      for (const farm_input& input : job.inputs) fetch(input, folder->path());
    } catch (const error& e) {
      if (e.kind() == error_kind::absent) throw;  // the server: says nothing about the job
      return failed(e.kind(), e.what());
    }
    try {
      result = container::mapped_file::open(options_.perform(job, folder->path()));
      if (result->bytes().size() > options_.max_bytes) throw error(error_kind::unsupported, fmt::format("the result has {} bytes, more than this worker's --max-bytes {}", result->bytes().size(), options_.max_bytes));
    } catch (const error& e) {
      return failed(e.kind(), e.what());
    } catch (const std::exception& e) {
      return failed(error_kind::internal, e.what());
    }
    content_hash hash = blake3(result->bytes());
    blobs_.put(hash, result->bytes());
    double ms = milliseconds_since(begin);
    note({queue_.finish(lease, hash, result->bytes().size(), ms), lease.id, job.label, "", ms});
  }

  void fetch(const farm_input& input, const std::filesystem::path& folder) {
    auto to = folder / input.name;
    std::error_code failed;
    std::filesystem::create_directories(to.parent_path(), failed);
    if (input.path.empty()) return blobs_.fetch(input.hash, input.bytes, to);
    // Another machine may have the folder that this one lacks: worth another try.
    std::shared_ptr<const container::mapped_file> shared;
    try {
      shared = container::mapped_file::open(input.path);
    } catch (const error& e) {
      throw error(error_kind::io, fmt::format("the job's input is on storage that worker {} cannot read: {}", name_, e.what()));
    }
    if (blake3(shared->bytes()) != input.hash) throw error(error_kind::corrupted, fmt::format("{}: is not the file that was submitted", input.path));
    std::filesystem::create_symlink(input.path, to, failed);
    if (failed) throw error(error_kind::io, fmt::format("{}: {}", to.string(), failed.message()));
  }

  void note(const worker_event& event) {
    std::lock_guard lock(reporting_);
    if (event.outcome == "done") ++totals_.done;
    else if (event.message.empty()) ++totals_.repeated;
    else ++totals_.failed;
    if (options_.report) options_.report(event);
  }

  const worker_options& options_;
  std::stop_token stop_;
  std::mutex& reporting_;
  worker_totals& totals_;
  std::string name_;
  redis_client redis_;       // asks for work, and stops when we do
  farm_queue waiting_;
  redis_client last_words_;  // delivers what has been made, also after a request to stop
  farm_queue queue_;
  blob_store blobs_;
};

}  // namespace

bool may_be_retried(error_kind kind) { return std::ranges::find(final_kinds, kind) == final_kinds.end(); }

worker_totals run_farm_worker(const worker_options& options, std::stop_token stop) {
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
