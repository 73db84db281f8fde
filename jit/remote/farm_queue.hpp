// The build farm's queue on a Redis server. It hands out jobs to workers and keeps their results. The state transitions
// are in farm_scripts.hpp, the format of a job in farm_job.hpp. Each version of Kiln has its own queue, because its
// results differ.
//
// The contents of the server are not trusted: an item that is not a valid job is marked dead with a reason and skipped,
// and the size of every reply is bounded.
//
// Every function may be called again after the connection failed. Used by one thread at a time; throws as redis_client
// does.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/error.hpp"
#include "jit/remote/farm_job.hpp"
#include "jit/remote/redis_client.hpp"

namespace kiln {

// The queue's record of one job.
struct farm_record {
  std::string id, state = "unknown";  // queued, running, done, dead; unknown: the queue has no such job
  std::string label, worker, error_kind, error;
  std::string result;  // hash of the result's bytes
  std::uint64_t result_bytes = 0;
  std::int64_t attempts = 0, lost = 0;
  double ms = 0;          // the worker's time for the job
  std::string differing;  // hash of a second worker's result, if its bytes differ from the first one's
};

struct farm_worker_record {
  std::string name;
  std::int64_t jobs = 0;              // number of jobs that it holds
  std::chrono::milliseconds idle{0};  // time since its last command
};

struct farm_status {
  std::string version;
  std::int64_t waiting = 0, running = 0;
  std::map<std::string, std::int64_t> counts;  // totals of the queue: submitted, done, failed, lost, repeated
  std::vector<farm_worker_record> workers;
  std::vector<farm_record> running_jobs, dead, flaky;
};

// A job that the worker has a lease for, or an invalid item that has already been marked dead.
struct farm_lease {
  std::string id, entry;
  std::string spec;     // text of the job, for read_job()
  std::string refusal;  // why the item is invalid; empty for a job
};

class farm_queue {
 public:
  // `redis` must outlive this object.
  farm_queue(redis_client& redis, const std::string& version);

  struct submission {
    std::string before, now;  // states of the job; before is "new" if the queue did not know it
  };
  // `keep` is how long the record is kept after the job is done or dead. `revive`: queue a dead job again.
  submission submit(const farm_job& job, std::chrono::seconds keep, bool revive);
  std::vector<farm_record> records(const std::vector<std::string>& ids);

  // Returns a job whose worker has not renewed its lease for `lease`, else the next one in the queue. Waits at most
  // `wait` for one. A job that `max_lost` workers vanished from is marked dead instead.
  std::optional<farm_lease> take(const std::string& worker, std::chrono::milliseconds lease, int max_lost,
                                 std::chrono::milliseconds wait);
  bool renew(const std::string& worker, const std::string& entry);
  // "done", "repeated", "differs" or "unknown".
  std::string finish(const farm_lease& job, const content_hash& result, std::uint64_t bytes, double ms);
  // "retry", "dead" or "ignored".
  std::string fail(const farm_lease& job, const std::string& worker, error_kind kind, const std::string& message,
                   bool final, int max_failures);
  // Removes a worker that holds no jobs from the list of workers.
  void leave(const std::string& worker);
  bool empty();

  farm_status status(std::size_t most_jobs = 100);

 private:
  std::string key(std::string_view name) const { return prefix_ + std::string(name); }
  redis_value run(std::string_view script, const std::string& id, const std::vector<std::string>& arguments,
                  const reply_bounds& bounds = {});
  void make_group();
  std::optional<redis_value> next_entry(const std::string& worker, std::chrono::milliseconds lease,
                                        std::chrono::milliseconds wait);
  std::optional<farm_lease> begin(const redis_value& entry, const std::string& worker, int max_lost);
  farm_lease refuse(const std::string& entry, const std::string& reason);
  std::optional<farm_lease> refuse_large_entry(const std::string& worker);
  std::vector<farm_record> members(const char* set, std::size_t most);

  redis_client& redis_;
  std::string version_, prefix_;
  std::string cursor_ = "0-0";  // XAUTOCLAIM's cursor in the search for expired leases
};

// All versions of Kiln that have a queue on this server, sorted.
std::vector<std::string> farm_versions(redis_client& redis);

}  // namespace kiln
