#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "ir/error.hpp"
#include "jit/compile_bytecode.hpp"
#include "jit/remote/farm_queue.hpp"
#include "tools/farm.hpp"

namespace kiln::tools {
namespace {

using json = nlohmann::ordered_json;

struct options {
  farm_choice farm;
  std::vector<std::string> ids;
};

constexpr std::chrono::seconds longest_look{8};  // time limit for asking about all farms of a server
// A worker without a job counts as alive if it was heard of within this time. A waiting worker asks every second.
constexpr std::chrono::seconds alive{10};

json describe(const farm_record& r) {
  return {{"id", r.id},
          {"label", r.label},
          {"state", r.state},
          {"worker", r.worker},
          {"attempts", r.attempts},
          {"lost", r.lost},
          {"error_kind", r.error_kind},
          {"error", r.error},
          {"result", r.result},
          {"result_bytes", r.result_bytes},
          {"ms", r.ms},
          {"differing", r.differing}};
}

json describe(const std::vector<farm_record>& records) {
  auto list = json::array();
  for (const farm_record& r : records) list.push_back(describe(r));
  return list;
}

json describe(const farm_status& s) {
  auto workers = json::array();
  for (const farm_worker_record& w : s.workers)
    workers.push_back({{"name", w.name}, {"jobs", w.jobs}, {"idle_ms", w.idle.count()}});
  json counts = json::object();
  for (const char* name : {"submitted", "done", "failed", "lost", "repeated"}) {
    auto found = s.counts.find(name);
    counts[name] = found == s.counts.end() ? 0 : found->second;
  }
  return {{"version", s.version},     {"waiting", s.waiting},      {"running", s.running},
          {"counts", counts},         {"workers", workers},        {"running_jobs", describe(s.running_jobs)},
          {"dead", describe(s.dead)}, {"flaky", describe(s.flaky)}};
}

void print_record(const farm_record& r, const char* what) {
  print("  {:<8} {}  {}", what, r.id.substr(0, 16), r.label);
  if (!r.worker.empty() && r.state == "running") print("  on {}", r.worker);
  if (r.attempts) print("  {} failures", r.attempts);
  if (r.lost) print("  {} lost workers", r.lost);
  if (!r.differing.empty()) print("  two workers made different bytes");
  if (!r.error.empty()) print("  {}: {}", r.error_kind, r.error);
  print("\n");
}

void print_status(const farm_status& s) {
  print("{}\n  {} waiting, {} running, {} workers\n", s.version, s.waiting, s.running,
        std::ranges::count_if(s.workers, [](const auto& w) { return w.jobs > 0 || w.idle < alive; }));
  for (const auto& [name, count] : s.counts) print("  {:<10} {}\n", name, count);
  for (const farm_record& r : s.running_jobs) print_record(r, "running");
  for (const farm_record& r : s.dead) print_record(r, "dead");
  for (const farm_record& r : s.flaky) print_record(r, "flaky");
}

int show(const options& o, const output_options& output) {
  redis_client redis(parse_redis_url(o.farm.redis), {.end = std::chrono::steady_clock::now() + longest_look});
  if (!o.ids.empty()) {
    auto records = farm_queue(redis, compiler_version()).records(o.ids);
    output.print({{"jobs", describe(records)}}, [&] {
      for (const farm_record& r : records) print_record(r, r.state.c_str());
    });
    return 0;
  }
  auto farms = json::array();
  std::vector<farm_status> all;
  for (const std::string& version : farm_versions(redis)) {
    all.push_back(farm_queue(redis, version).status());
    farms.push_back(describe(all.back()));
  }
  output.print({{"redis", redis.address().str()}, {"this_version", compiler_version()}, {"farms", farms}}, [&] {
    if (all.empty()) print("no farm has used {} yet\n", redis.address().str());
    for (const farm_status& s : all) print_status(s);
  });
  return 0;
}

}  // namespace

action declare_farm_status(CLI::App& app) {
  auto o = std::make_shared<options>();
  app.footer("Example:\n  kiln farm status --redis redis://build-queue:6379 --json");
  add_farm_options(app, o->farm);
  app.add_option("JOB", o->ids, "Only these jobs (whole IDs, of this version)");
  return [o](const output_options& output) { return show(*o, output); };
}

}  // namespace kiln::tools
