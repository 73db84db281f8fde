#include "jit/remote/farm_queue.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/error.hpp"
#include "jit/remote/farm_scripts.hpp"

namespace kiln {
namespace {

constexpr const char* group = "workers";
constexpr const char* versions_key = "kiln:farms";

// What a list of alternating names and values says.
std::map<std::string, redis_value> pairs(const redis_value& list) {
  std::map<std::string, redis_value> result;
  for (std::size_t i = 0; i + 1 < list.items.size(); i += 2) result.emplace(list.items[i].text, list.items[i + 1]);
  return result;
}

farm_record read_record(const std::string& id, const redis_value& hash) {
  farm_record r;
  r.id = id;
  for (const auto& [name, value] : pairs(hash)) {
    if (name == "state") r.state = value.text;
    else if (name == "label") r.label = value.text;
    else if (name == "worker") r.worker = value.text;
    else if (name == "error_kind") r.error_kind = value.text;
    else if (name == "error") r.error = value.text;
    else if (name == "result") r.result = value.text;
    else if (name == "result_bytes") r.result_bytes = static_cast<std::uint64_t>(value.as_number());
    else if (name == "attempts") r.attempts = value.as_number();
    else if (name == "lost") r.lost = value.as_number();
    else if (name == "ms") r.ms = static_cast<double>(value.as_number());
    else if (name == "differing") r.differing = value.text;
  }
  return r;
}

}  // namespace

farm_queue::farm_queue(redis_client& redis, const std::string& version) : redis_(redis), version_(version), prefix_("kiln:farm:" + blake3(version).hex().substr(0, 16) + ":") {}

std::vector<std::string> farm_queue::job_keys(const std::string& id) const { return {key("job:" + id), key("jobs"), key("running"), key("dead"), key("flaky"), key("counts")}; }

farm_queue::submission farm_queue::submit(const farm_job& job, std::chrono::seconds keep, bool revive) {
  std::string id = job.id();
  redis_.call({"SADD", versions_key, version_});
  redis_value answer = redis_.evaluate(farm_scripts::submit, job_keys(id), {id, write_job(job), job.label, std::to_string(keep.count()), revive ? "1" : "0"});
  if (answer.items.size() != 2) throw error(error_kind::io, "the farm's queue answers with what makes no sense");
  return {answer.items[0].text, answer.items[1].text};
}

std::vector<farm_record> farm_queue::records(const std::vector<std::string>& ids) {
  std::vector<std::string> keys;
  for (const std::string& id : ids) keys.push_back(key("job:" + id));
  std::vector<redis_client::command> commands;
  for (const std::string& k : keys) commands.push_back({"HGETALL", k});
  std::vector<farm_record> result;
  if (ids.empty()) return result;
  auto answers = redis_.call_all(commands);
  for (std::size_t i = 0; i < ids.size(); ++i) result.push_back(read_record(ids[i], answers[i]));
  return result;
}

void farm_queue::make_group() {
  const std::string jobs = key("jobs");
  redis_value answer = redis_.ask({"XGROUP", "CREATE", jobs, group, "0", "MKSTREAM"});
  if (answer.kind == redis_value::type::error && !answer.text.starts_with("BUSYGROUP")) throw error(error_kind::io, fmt::format("the Redis server at {} refuses the farm's queue: {}", redis_.address().str(), answer.text));
  redis_.call({"SADD", versions_key, version_});
}

std::optional<farm_lease> farm_queue::take(const std::string& worker, std::chrono::milliseconds lease, int max_lost, std::chrono::milliseconds wait) {
  const std::string jobs = key("jobs"), lease_text = std::to_string(lease.count()), wait_text = std::to_string(std::max<std::int64_t>(1, wait.count()));
  redis_value claimed = redis_.ask({"XAUTOCLAIM", jobs, group, worker, lease_text, cursor_, "COUNT", "1"});
  if (claimed.kind == redis_value::type::error) {
    if (!claimed.text.starts_with("NOGROUP")) throw error(error_kind::io, fmt::format("the Redis server at {} (version 6.2 is the oldest that will do) refuses the farm's queue: {}", redis_.address().str(), claimed.text));
    make_group();
    return std::nullopt;
  }
  if (claimed.items.size() >= 2) {
    cursor_ = claimed.items[0].text;
    for (const redis_value& entry : claimed.items[1].items)
      if (auto job = begin(entry, worker, max_lost)) return job;
  }
  redis_value read = redis_.ask({"XREADGROUP", "GROUP", group, worker, "COUNT", "1", "BLOCK", wait_text, "STREAMS", jobs, ">"});
  for (const redis_value& stream : read.items)
    for (const redis_value& entry : stream.items.at(1).items)
      if (auto job = begin(entry, worker, max_lost)) return job;
  return std::nullopt;
}

std::optional<farm_lease> farm_queue::begin(const redis_value& entry, const std::string& worker, int max_lost) {
  if (entry.items.size() < 2) return std::nullopt;
  const std::string& place = entry.items[0].text;
  std::string id = pairs(entry.items[1])["job"].text;
  redis_value answer = redis_.evaluate(farm_scripts::begin, job_keys(id), {id, place, worker, std::to_string(max_lost)});
  if (answer.items.size() < 2) return std::nullopt;
  return farm_lease{id, place, answer.items[1].text};
}

bool farm_queue::renew(const std::string& worker, const std::string& entry) { return redis_.evaluate(farm_scripts::renew, {key("jobs")}, {entry, worker}).as_number() == 1; }

std::string farm_queue::finish(const farm_lease& job, const content_hash& result, std::uint64_t bytes, double ms) {
  return redis_.evaluate(farm_scripts::finish, job_keys(job.id), {job.id, job.entry, result.hex(), std::to_string(bytes), std::to_string(static_cast<std::int64_t>(ms))}).text;
}

std::string farm_queue::fail(const farm_lease& job, const std::string& worker, error_kind kind, const std::string& message, bool final, int max_failures) {
  return redis_.evaluate(farm_scripts::fail, job_keys(job.id), {job.id, job.entry, worker, std::string(name(kind)), message, final ? "1" : "0", std::to_string(max_failures)}).text;
}

void farm_queue::leave(const std::string& worker) {
  // With jobs in hand the name stays: deleting it would delete them from the list of those that somebody must do.
  static constexpr std::string_view script = R"lua(
for _, c in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], 'workers')) do
  if c[2] == ARGV[1] and c[4] == 0 then redis.call('XGROUP', 'DELCONSUMER', KEYS[1], 'workers', ARGV[1]) end
end)lua";
  redis_.evaluate(script, {key("jobs")}, {worker});
}

bool farm_queue::empty() {
  const std::string jobs = key("jobs");
  return redis_.call({"XLEN", jobs}).as_number() == 0;
}

std::vector<farm_record> farm_queue::members(const char* set, std::size_t most) {
  const std::string name = key(set), count = std::to_string(most);
  std::vector<std::string> ids;
  for (const redis_value& id : redis_.call({"ZREVRANGEBYSCORE", name, "+inf", "-inf", "LIMIT", "0", count}).items) ids.push_back(id.text);
  auto result = records(ids);
  std::erase_if(result, [&](const farm_record& r) {
    if (r.state == "unknown") redis_.call({"ZREM", name, r.id});  // it has expired
    return r.state == "unknown";
  });
  return result;
}

farm_status farm_queue::status(std::size_t most_jobs) {
  farm_status s;
  s.version = version_;
  const std::string jobs = key("jobs"), counts = key("counts");
  for (const auto& [name, value] : pairs(redis_.call({"HGETALL", counts}))) s.counts[name] = value.as_number();
  std::int64_t all = redis_.call({"XLEN", jobs}).as_number();
  redis_value consumers = redis_.ask({"XINFO", "CONSUMERS", jobs, group});  // an error while no worker has ever come
  for (const redis_value& c : consumers.items) {
    auto fields = pairs(c);
    s.workers.push_back({fields["name"].text, fields["pending"].as_number(), std::chrono::milliseconds(fields["idle"].as_number())});
    s.running += s.workers.back().jobs;
  }
  s.waiting = all - s.running;
  s.running_jobs = members("running", most_jobs);
  s.dead = members("dead", most_jobs);
  s.flaky = members("flaky", most_jobs);
  return s;
}

std::vector<std::string> farm_versions(redis_client& redis) {
  std::vector<std::string> result;
  for (const redis_value& v : redis.call({"SMEMBERS", versions_key}).items) result.push_back(v.text);
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace kiln
