#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "ir/error.hpp"
#include "jit/compile_bytecode.hpp"
#include "jit/own_user.hpp"
#include "jit/remote/farm_worker.hpp"
#include "tools/farm.hpp"
#include "tools/farm_child.hpp"
#include "tools/farm_options.hpp"
#include "tools/interruption.hpp"

namespace kiln::tools {
namespace {

using json = nlohmann::ordered_json;

struct options {
  farm_choice farm;
  int jobs = 1, attempts = 3, lost = 5;
  double lease_seconds = 30, time_seconds = 900;
  std::uint64_t memory_bytes = std::uint64_t{16} << 30, max_bytes = std::uint64_t{1} << 30;
  std::string scratch;
  std::vector<std::string> shared_roots;
  bool drain = false;
};

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

int work(const options& o, const output_options& output) {
  interruption stop;
  farm_worker_options w;
  w.address = parse_redis_url(o.farm.redis);
  w.version = compiler_version();
  w.jobs = o.jobs;
  w.lease = milliseconds(o.lease_seconds);
  w.keep = keep_time(o.farm);
  w.max_failures = o.attempts;
  w.max_lost = o.lost;
  w.max_bytes = o.max_bytes;
  w.scratch = o.scratch.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(o.scratch);
  check_own_user_folder(w.scratch);
  w.drain = o.drain;
  w.shared_roots.assign(o.shared_roots.begin(), o.shared_roots.end());
  w.check = check_farm_job;
  child_limits limits{.time = milliseconds(o.time_seconds), .memory_bytes = static_cast<std::int64_t>(o.memory_bytes)};
  w.perform = [limits](const farm_job& job, const std::filesystem::path& folder) {
    return perform_in_child(job, folder, limits);
  };
  w.report = [&output](const worker_event& e) {
    if (output.quiet) return;
    note("{:<8} {}  {:.2f} s  {}{}{}\n", e.outcome, e.id.substr(0, 16), e.ms / 1e3, e.label,
         e.message.empty() ? "" : ": ", e.message);
    std::fflush(stderr);
  };
  worker_totals t = run_farm_worker(w, stop.token());
  output.print(
      json{{"done", t.done}, {"repeated", t.repeated}, {"failed", t.failed}, {"interrupted", stop.requested()}},
      [&] { print("{} jobs done, {} that others had done already, {} failures\n", t.done, t.repeated, t.failed); });
  return 0;
}

}  // namespace

action declare_farm_worker(CLI::App& app) {
  auto o = std::make_shared<options>();
  app.footer("Example:\n  kiln farm worker --redis redis://build-queue:6379 --jobs 4");
  add_farm_options(app, o->farm);
  app.add_option("--jobs", o->jobs, "Jobs at once (default: 1)")->check(CLI::PositiveNumber);
  app.add_option(
         "--lease", o->lease_seconds,
         "Seconds after which the job of a worker that does not respond is given to another; the same for all workers")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  app.add_option("--time-limit", o->time_seconds, "Seconds for one job")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--memory-limit", o->memory_bytes, "Address space of one job, e.g. 8GB (default: 16GB)")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--max-bytes", o->max_bytes,
                 "Largest result, and largest model with its files that is fetched, e.g. 4GB (default: 1GB)")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--shared-root", o->shared_roots,
                 "Folder below which files of `submit --shared` are read; may be given several times (default: no such "
                 "file is read)")
      ->check(CLI::ExistingDirectory)
      ->allow_extra_args(false);
  app.add_option("--attempts", o->attempts, "Failures after which a job is dead")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--lost", o->lost, "Vanished workers after which a job is dead")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--scratch", o->scratch, "Folder for the files of jobs (default: the system's temporary folder)");
  app.add_flag("--drain", o->drain, "End when the queue is empty, or when the server could not be used for one lease");
  return [o](const output_options& output) { return work(*o, output); };
}

}  // namespace kiln::tools
