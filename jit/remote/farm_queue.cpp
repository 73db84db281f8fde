#include "jit/remote/farm_queue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "ir/error.hpp"
#include "jit/remote/farm_scripts.hpp"

namespace kiln {
namespace {

constexpr const char* group = "workers";
constexpr const char* versions_key = "kiln:farms";

// Upper bounds on strings and lists that are read from the server.
constexpr std::size_t longest_id = 128, longest_version = 512, longest_value = 4096, most_versions = 1000;
constexpr std::size_t largest_entry = std::size_t{1} << 16;

// The fields that the script `records` is asked for, in the order in which read_record() takes their values.
constexpr std::array<std::string_view, 11> record_fields{
    "state", "label", "worker", "error_kind", "error", "result", "result_bytes", "attempts", "lost", "ms", "differing"};
constexpr std::array<std::string_view, 5> count_names{"submitted", "done", "failed", "lost", "repeated"};

std::map<std::string, redis_value> pairs(const redis_value& list) {
  std::map<std::string, redis_value> result;
  for (std::size_t i = 0; i + 1 < list.items.size(); i += 2) result.emplace(list.items[i].text, list.items[i + 1]);
  return result;
}

farm_record read_record(const std::string& id, const redis_value& values) {
  farm_record r;
  r.id = id;
  auto at = [&](std::size_t i) { return i < values.items.size() ? values.items[i] : redis_value(); };
  auto number = [&](std::size_t i) { return std::max<std::int64_t>(0, at(i).as_number()); };
  if (!at(0).is_null()) r.state = at(0).text;
  r.label = at(1).text;
  r.worker = at(2).text;
  r.error_kind = at(3).text;
  r.error = at(4).text;
  r.result = at(5).text;
  r.result_bytes = static_cast<std::uint64_t>(number(6));
  r.attempts = number(7);
  r.lost = number(8);
  r.ms = static_cast<double>(number(9));
  r.differing = at(10).text;
  return r;
}

// Names of jobs become parts of keys and are printed, so only harmless characters are accepted. Kiln's own names are
// hashes.
bool is_id(std::string_view text) {
  auto plain = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; };
  return !text.empty() && text.size() <= longest_id && std::ranges::all_of(text, plain);
}

// An entry ID of a Redis stream, such as "1526919030474-55".
bool is_entry(std::string_view text) {
  return !text.empty() && text.size() <= 64 &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) || c == '-'; });
}

bool is_error(const redis_value& v) { return v.kind == redis_value::type::error; }

[[noreturn]] void nonsense(const redis_client& redis, const char* what) {
  throw error(error_kind::corrupted,
              fmt::format("the Redis server at {} sends an unexpected answer to {}", redis.address().str(), what));
}

}  // namespace

farm_queue::farm_queue(redis_client& redis, const std::string& version)
    : redis_(redis), version_(version), prefix_("kiln:farm:" + blake3(version).hex().substr(0, 16) + ":") {}

redis_value farm_queue::run(std::string_view script, const std::string& id, const std::vector<std::string>& arguments,
                            const reply_bounds& bounds) {
  return redis_.evaluate(std::string(farm_scripts::prelude) + std::string(script),
                         {key("job:" + id), key("jobs"), key("running"), key("dead"), key("flaky"), key("counts")},
                         arguments, bounds);
}

farm_queue::submission farm_queue::submit(const farm_job& job, std::chrono::seconds keep, bool revive) {
  std::string id = job.id(), spec = write_job(job);
  if (spec.size() > largest_job_bytes)
    throw error(error_kind::unsupported,
                fmt::format("{}: the job's options and names of files have {} bytes, more than {}", job.label,
                            spec.size(), largest_job_bytes));
  redis_.call({"SADD", versions_key, version_});
  redis_value answer =
      run(farm_scripts::submit, id, {id, spec, job.label, std::to_string(keep.count()), revive ? "1" : "0"});
  if (answer.items.size() != 2) nonsense(redis_, "a submission");
  return {answer.items[0].text, answer.items[1].text};
}

std::vector<farm_record> farm_queue::records(const std::vector<std::string>& ids) {
  std::vector<farm_record> result;
  if (ids.empty()) return result;
  std::vector<std::string> keys, arguments{std::to_string(longest_value)};
  for (const std::string& id : ids) keys.push_back(key("job:" + id));
  for (std::string_view name : record_fields) arguments.emplace_back(name);
  const std::size_t values = ids.size() * (record_fields.size() + 1);
  auto answer = redis_.evaluate(farm_scripts::records, keys, arguments,
                                {.bytes = values * (longest_value + 64), .elements = values + ids.size()});
  if (answer.items.size() != ids.size()) nonsense(redis_, "a question about jobs");
  for (std::size_t i = 0; i < ids.size(); ++i) result.push_back(read_record(ids[i], answer.items[i]));
  return result;
}

void farm_queue::make_group() {
  const std::string jobs = key("jobs");
  redis_value answer = redis_.ask({"XGROUP", "CREATE", jobs, group, "0", "MKSTREAM"});
  if (is_error(answer) && !answer.text.starts_with("BUSYGROUP"))
    throw error(error_kind::io, fmt::format("the Redis server at {} refuses the farm's queue: {}",
                                            redis_.address().str(), answer.text));
  redis_.call({"SADD", versions_key, version_});
}

// Returns an entry whose lease has expired, else the next one of the stream; nothing if none arrives in time.
std::optional<redis_value> farm_queue::next_entry(const std::string& worker, std::chrono::milliseconds lease,
                                                  std::chrono::milliseconds wait) {
  const reply_bounds bounds{.bytes = largest_entry, .elements = 1024};
  const std::string jobs = key("jobs"), lease_text = std::to_string(lease.count()),
                    wait_text = std::to_string(std::max<std::int64_t>(1, wait.count()));
  const std::string from = std::exchange(cursor_, "0-0");
  redis_value claimed = redis_.ask({"XAUTOCLAIM", jobs, group, worker, lease_text, from, "COUNT", "1"}, bounds);
  if (is_error(claimed) && claimed.text.starts_with("NOGROUP")) {
    make_group();
    return std::nullopt;
  }
  if (is_error(claimed)) {
    const bool too_old = claimed.text.find("unknown command") != std::string::npos;
    throw error(too_old ? error_kind::unsupported : error_kind::io,
                fmt::format("the Redis server at {} refuses the farm's queue: {}{}", redis_.address().str(),
                            claimed.text, too_old ? " (version 6.2 or later is needed)" : ""));
  }
  if (claimed.items.size() < 2 || !is_entry(claimed.items[0].text)) nonsense(redis_, "XAUTOCLAIM");
  cursor_ = claimed.items[0].text;
  if (!claimed.items[1].items.empty()) return std::move(claimed.items[1].items.front());
  redis_value read = redis_.ask(
      {"XREADGROUP", "GROUP", group, worker, "COUNT", "1", "BLOCK", wait_text, "STREAMS", jobs, ">"}, bounds);
  if (is_error(read))
    throw error(error_kind::io,
                fmt::format("the Redis server at {} refuses the farm's queue: {}", redis_.address().str(), read.text));
  if (read.is_null()) return std::nullopt;
  if (read.items.size() != 1 || read.items[0].items.size() != 2 || read.items[0].items[1].items.size() != 1)
    nonsense(redis_, "XREADGROUP");
  return std::move(read.items[0].items[1].items.front());
}

std::optional<farm_lease> farm_queue::take(const std::string& worker, std::chrono::milliseconds lease, int max_lost,
                                           std::chrono::milliseconds wait) {
  try {
    auto entry = next_entry(worker, lease, wait);
    return entry ? begin(*entry, worker, max_lost) : std::nullopt;
  } catch (const oversized_reply&) {
    // The server has assigned the entry to this worker, although the reply was too large to read.
    if (auto refused = refuse_large_entry(worker)) return refused;
    throw;
  }
}

std::optional<farm_lease> farm_queue::refuse_large_entry(const std::string& worker) {
  for (const redis_value& entry :
       run(farm_scripts::large_entries, "", {worker, std::to_string(largest_entry / 2)}).items)
    if (is_entry(entry.text)) return refuse(entry.text, "it is too large for a job");
  return std::nullopt;
}

farm_lease farm_queue::refuse(const std::string& entry, const std::string& reason) {
  const std::string id = blake3(version_ + " entry " + entry).hex(),
                    why = fmt::format("entry {} of the queue: {}", entry, reason);
  run(farm_scripts::refuse, id, {id, entry, fmt::format("entry {}", entry), why});
  return {id, entry, {}, why};
}

std::optional<farm_lease> farm_queue::begin(const redis_value& entry, const std::string& worker, int max_lost) {
  if (entry.items.size() < 2 || !is_entry(entry.items[0].text)) nonsense(redis_, "a request for a job");
  const std::string& place = entry.items[0].text;
  auto fields = pairs(entry.items[1]);
  auto named = fields.find("job");
  if (named == fields.end()) return refuse(place, "it names no job");
  const std::string id = named->second.text;
  if (!is_id(id)) return refuse(place, "the name of its job is not valid");
  redis_value answer =
      run(farm_scripts::begin, id, {id, place, worker, std::to_string(max_lost), std::to_string(largest_job_bytes)},
          {.bytes = largest_job_bytes + (1 << 16), .elements = 2});
  if (answer.items.empty()) nonsense(redis_, "the start of a job");
  if (answer.items[0].text == "drop" || answer.items.size() < 2) return std::nullopt;
  if (answer.items[0].text == "dead") return farm_lease{id, place, {}, answer.items[1].text};
  return farm_lease{id, place, answer.items[1].text, {}};
}

bool farm_queue::renew(const std::string& worker, const std::string& entry) {
  return run(farm_scripts::renew, "", {entry, worker}).as_number() == 1;
}

std::string farm_queue::finish(const farm_lease& job, const content_hash& result, std::uint64_t bytes, double ms) {
  return run(farm_scripts::finish, job.id,
             {job.id, job.entry, result.hex(), std::to_string(bytes), std::to_string(static_cast<std::int64_t>(ms))})
      .text;
}

std::string farm_queue::fail(const farm_lease& job, const std::string& worker, error_kind kind,
                             const std::string& message, bool final, int max_failures) {
  return run(farm_scripts::fail, job.id,
             {job.id, job.entry, worker, std::string(name(kind)), message.substr(0, longest_value), final ? "1" : "0",
              std::to_string(max_failures)})
      .text;
}

void farm_queue::leave(const std::string& worker) { run(farm_scripts::leave, "", {worker}); }

bool farm_queue::empty() {
  const std::string jobs = key("jobs");
  return redis_.call({"XLEN", jobs}).as_number() == 0;
}

std::vector<farm_record> farm_queue::members(const char* set, std::size_t most) {
  const std::string name = key(set);
  std::vector<std::string> ids;
  for (const redis_value& id :
       redis_.evaluate(farm_scripts::members, {name}, {std::to_string(most), std::to_string(longest_id)}).items)
    if (is_id(id.text)) ids.push_back(id.text);
  auto result = records(ids);
  std::erase_if(result, [&](const farm_record& r) {
    if (r.state == "unknown") redis_.call({"ZREM", name, r.id});  // its record has expired
    return r.state == "unknown";
  });
  return result;
}

farm_status farm_queue::status(std::size_t most_jobs) {
  farm_status s;
  s.version = version_;
  const std::string jobs = key("jobs"), counts = key("counts");
  redis_client::command words{"HMGET", counts};
  words.insert(words.end(), count_names.begin(), count_names.end());
  redis_value values = redis_.ask(words);
  for (std::size_t i = 0; i < count_names.size() && i < values.items.size(); ++i)
    if (!values.items[i].is_null()) s.counts[std::string(count_names[i])] = values.items[i].as_number();
  std::int64_t all = redis_.call({"XLEN", jobs}).as_number();
  // An error until the first worker has created the group; then there are no workers to list.
  redis_value consumers =
      redis_.ask({"XINFO", "CONSUMERS", jobs, group}, {.bytes = std::size_t{16} << 20, .elements = 200'000});
  for (const redis_value& c : consumers.items) {
    auto fields = pairs(c);
    s.workers.push_back(
        {fields["name"].text, fields["pending"].as_number(), std::chrono::milliseconds(fields["idle"].as_number())});
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
  for (const redis_value& v : redis
                                  .evaluate(farm_scripts::some_of, {versions_key},
                                            {std::to_string(most_versions), std::to_string(longest_version)})
                                  .items)
    result.push_back(v.text);
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace kiln
