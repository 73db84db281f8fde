// The build farm's queue on a Redis server: who may do which job, and what came of it. The transitions are in
// farm_scripts.hpp, what a job is in farm_job.hpp. Jobs of different versions of Kiln lie in different queues, since
// each has another result.
//
// What the server holds is not trusted: an item that cannot be a job is marked dead with its reason and skipped, and
// every reply is bounded.
//
// Every function may be repeated after a failure of the connection. One thread at a time; errors are those of
// redis_client.
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

// What the queue knows about one job.
struct farm_record {
  std::string id, state = "unknown";  // queued, running, done, dead; unknown: the queue has no such job
  std::string label, worker, error_kind, error;
  std::string result;  // hash of the result's bytes
  std::uint64_t result_bytes = 0;
  std::int64_t attempts = 0, lost = 0;
  double ms = 0;          // of work
  std::string differing;  // hash of other bytes that a second worker made
};

struct farm_worker_record {
  std::string name;
  std::int64_t jobs = 0;              // that it holds
  std::chrono::milliseconds idle{0};  // since it was last heard of
};

struct farm_status {
  std::string version;
  std::int64_t waiting = 0, running = 0;
  std::map<std::string, std::int64_t> counts;  // since the farm exists: submitted, done, failed, lost, repeated
  std::vector<farm_worker_record> workers;
  std::vector<farm_record> running_jobs, dead, flaky;
};

// A job that a worker may do now, or an item that can be none: that has been marked dead already.
struct farm_lease {
  std::string id, entry;
  std::string spec;     // read_job() reads it
  std::string refusal;  // why the item is dead; empty for a job
};

class farm_queue {
 public:
  // Refers to `redis`.
  farm_queue(redis_client& redis, const std::string& version);

  struct submission {
    std::string before, now;  // states; before: "new" for a job that the queue did not know
  };
  // `revive`: try a dead job again.
  submission submit(const farm_job& job, std::chrono::seconds keep, bool revive);
  std::vector<farm_record> records(const std::vector<std::string>& ids);

  // A job whose lease of `lease` has ended, or else the next one in the queue, waiting for it for at most `wait`.
  std::optional<farm_lease> take(const std::string& worker, std::chrono::milliseconds lease, int max_lost,
                                 std::chrono::milliseconds wait);
  bool renew(const std::string& worker, const std::string& entry);
  // "done", "repeated", "differs" or "unknown".
  std::string finish(const farm_lease& job, const content_hash& result, std::uint64_t bytes, double ms);
  // "retry", "dead" or "ignored".
  std::string fail(const farm_lease& job, const std::string& worker, error_kind kind, const std::string& message,
                   bool final, int max_failures);
  // Takes a worker that holds nothing off the list.
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
  std::string cursor_ = "0-0";  // of the search for leases that have ended
};

// Every version that has a queue on this server.
std::vector<std::string> farm_versions(redis_client& redis);

}  // namespace kiln
