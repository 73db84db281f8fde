#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>

#include "ir/error.hpp"
#include "jit/compile_bytecode.hpp"
#include "jit/remote/farm_queue.hpp"
#include "tools/farm.hpp"
#include "tools/farm_batch.hpp"
#include "tools/progress.hpp"

namespace kiln::tools {
namespace {

using json = nlohmann::ordered_json;
using clock = std::chrono::steady_clock;

constexpr std::chrono::seconds patience{120};     // how long to retry while the server restarts
constexpr std::chrono::seconds longest_call{30};  // enough for one chunk over a slow network
constexpr std::chrono::milliseconds first_look{50}, last_look{1000};
constexpr std::size_t looked_at_once = 256;  // number of jobs per query
constexpr std::uint64_t least_result_limit = std::uint64_t{1} << 30;
constexpr int most_submissions = 5;  // of one job, if the server keeps losing it

struct options {
  farm_choice farm;
  batch_options batch;
  std::vector<std::string> models;
  std::string manifest, folder;
  bool wait = false, retry = false;
  double timeout_seconds = 0;
};

// One submitted job and its state.
struct tracked {
  batch_job what;
  farm_queue::submission submitted;
  farm_record record;
  std::filesystem::path fetched;
  int submissions = 0;
  bool settled = false;
};

class submission {
 public:
  submission(const options& o, std::vector<batch_job> batch)
      : o_(o),
        keep_(keep_time(o.farm)),
        redis_(parse_redis_url(o.farm.redis), {.call = longest_call, .patience = patience}),
        queue_(redis_, compiler_version()),
        blobs_(redis_, keep_) {
    for (batch_job& b : batch) jobs_.push_back({std::move(b), {}, {}, {}, 0, false});
  }

  void submit_all(progress_bar& progress) {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      submit(jobs_[i]);
      progress.update(i + 1, jobs_.size());
    }
  }

  void wait(progress_bar& progress) {
    auto end = o_.timeout_seconds > 0
                   ? clock::now() +
                         std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(o_.timeout_seconds))
                   : clock::time_point::max();
    if (queue_.status(0).workers.empty())
      spdlog::warn("no worker of this version has come yet: start `kiln farm worker` of {}", compiler_version());
    for (auto pause = first_look;;) {
      std::size_t before = settled();
      look();
      std::size_t now = settled();
      progress.update(now, jobs_.size());
      if (now == jobs_.size()) return;
      if (clock::now() > end)
        throw error(error_kind::timed_out, fmt::format("{} of {} jobs are not done after {} s; they stay in the queue",
                                                       jobs_.size() - now, jobs_.size(), o_.timeout_seconds));
      pause = now > before ? first_look : std::min(2 * pause, last_look);
      std::this_thread::sleep_for(pause);
    }
  }

  // Updates all jobs that are not settled. Without --wait it is called once, to fetch results that exist already.
  void look() {
    std::vector<tracked*> open;
    for (tracked& t : jobs_)
      if (!t.settled) open.push_back(&t);
    for (std::size_t begin = 0; begin < open.size(); begin += looked_at_once) {
      std::size_t end = std::min(open.size(), begin + looked_at_once);
      std::vector<std::string> ids;
      for (std::size_t i = begin; i < end; ++i) ids.push_back(open[i]->what.id);
      auto records = queue_.records(ids);
      for (std::size_t i = begin; i < end; ++i) settle(*open[i], std::move(records[i - begin]));
    }
  }

  const std::vector<tracked>& jobs() const { return jobs_; }

 private:
  void submit(tracked& t) {
    if (++t.submissions > most_submissions)
      throw error(
          error_kind::io,
          fmt::format("the Redis server at {} has lost job {} ({}) {} times: is its memory full (INFO evicted_keys)?",
                      redis_.address().str(), t.what.id, t.what.job.label, most_submissions));
    upload_inputs(t.what, blobs_);
    auto answer = queue_.submit(t.what.job, keep_, o_.retry && t.submissions == 1);
    if (t.submissions == 1) t.submitted = answer;
  }

  void settle(tracked& t, farm_record record) {
    t.record = std::move(record);
    if (t.record.state == "dead") t.settled = true;
    if (t.record.state == "unknown") submit(t);
    if (t.record.state != "done") return;
    if (!o_.folder.empty()) {
      if (t.record.result_bytes > std::max(o_.batch.max_bytes, least_result_limit))
        throw error(error_kind::unsupported, fmt::format("{}: the result has {} bytes, more than --max-bytes {}",
                                                         t.what.job.label, t.record.result_bytes, o_.batch.max_bytes));
      auto file = std::filesystem::path(o_.folder) / t.what.result_name;
      try {
        blobs_.fetch(content_hash::from_hex(t.record.result), t.record.result_bytes, file);
      } catch (const error& e) {
        if (e.kind() != error_kind::missing_file && e.kind() != error_kind::corrupted && e.kind() != error_kind::usage)
          throw;  // usage: the result's name is not a hash
        // As long as the blob's head exists, the queue considers the job done. Remove it.
        if (e.kind() != error_kind::usage)
          blobs_.remove(content_hash::from_hex(t.record.result), t.record.result_bytes);
        spdlog::warn("{}: {}; the job is run again", t.what.job.label, e.what());
        return submit(t);
      }
      t.fetched = file;
    }
    t.settled = true;
  }

  std::size_t settled() const { return static_cast<std::size_t>(std::ranges::count_if(jobs_, &tracked::settled)); }

  const options& o_;
  std::chrono::seconds keep_;
  redis_client redis_;
  farm_queue queue_;
  blob_store blobs_;
  std::vector<tracked> jobs_;
};

json describe(const tracked& t) {
  const farm_record& r = t.record;
  return {{"id", t.what.id},
          {"label", t.what.job.label},
          {"before", t.submitted.before},
          {"state", r.state},
          {"file", t.fetched.string()},
          {"result", r.result},
          {"result_bytes", r.result_bytes},
          {"ms", r.ms},
          {"attempts", r.attempts},
          {"lost", r.lost},
          {"differing", r.differing},
          {"error_kind", r.error_kind},
          {"error", r.error}};
}

int submit(const options& o, const output_options& output) {
  auto began = clock::now();
  if (!o.folder.empty() && !o.wait) throw error(error_kind::usage, "-o fetches results, so it needs --wait");
  std::vector<listed_model> models = o.manifest.empty() ? std::vector<listed_model>() : read_model_list(o.manifest);
  for (const std::string& m : o.models) models.push_back({m, {}});
  if (models.empty()) throw error(error_kind::usage, "name a model, or a list of them with --manifest");
  if (!o.folder.empty()) {
    std::error_code failed;
    std::filesystem::create_directories(o.folder, failed);
    if (failed) throw error(error_kind::io, fmt::format("{}: {}", o.folder, failed.message()));
  }
  submission work(o, make_batch(models, o.batch));
  progress_bar sending("submitting", output), waiting("done", output);
  work.submit_all(sending);
  sending.finish();
  if (o.wait) work.wait(waiting);
  else work.look();
  waiting.finish();

  auto jobs = json::array();
  std::map<std::string, std::size_t> states;
  std::size_t fresh = 0;
  int code = 0;
  for (const tracked& t : work.jobs()) {
    jobs.push_back(describe(t));
    ++states[t.record.state];
    fresh += t.submitted.before == "new";
    if (t.record.state == "dead" && code == 0) code = exit_code(error_kind_named(t.record.error_kind));
  }
  double seconds = std::chrono::duration<double>(clock::now() - began).count();
  output.print({{"jobs", jobs}, {"new", fresh}, {"states", states}, {"seconds", seconds}}, [&] {
    for (const tracked& t : work.jobs()) {
      const farm_record& r = t.record;
      print("{:<8} {}  {}{}{}{}\n", r.state, t.what.id.substr(0, 16), t.what.job.label,
            t.fetched.empty() ? "" : " → " + t.fetched.string(),
            r.attempts ? fmt::format("  ({} failures)", r.attempts) : "", r.state == "dead" ? ": " + r.error : "");
    }
    print("{} jobs, {} of them new, in {:.2f} s\n", work.jobs().size(), fresh, seconds);
  });
  return code;
}

}  // namespace

action declare_farm_submit(CLI::App& app) {
  auto o = std::make_shared<options>();
  app.footer(
      "Example:\n  kiln farm submit *.onnx --options \"\" --options \"--fp16\" --wait -o compiled\n  kiln farm submit "
      "resnet50.kiln --target gfx942 --target sm_90 --wait -o warm");
  app.add_option("MODEL", o->models, "ONNX models to compile, .kiln files to warm");
  app.add_option("--manifest", o->manifest, "List of models, one per line with its options, or JSON");
  app.add_option("--options", o->batch.variants,
                 "Options of every model, as one text; several times: every model with each of them")
      ->allow_extra_args(false);
  app.add_option("--target", o->batch.targets, "Targets of .kiln files, a job for each")->allow_extra_args(false);
  app.add_flag("--wait", o->wait, "Wait until every job is done or dead");
  app.add_option("-o,--output", o->folder, "Folder for the results");
  app.add_option("--timeout", o->timeout_seconds, "Seconds to wait at most")->check(CLI::NonNegativeNumber);
  app.add_flag("--retry", o->retry, "Try dead jobs again");
  app.add_flag(
      "--shared", o->batch.shared,
      "Workers read the models where they lie, under the same path, below their --shared-root; only hashes travel");
  app.add_option(
         "--max-bytes", o->batch.max_bytes,
         "Largest model to send, with its weights and sources, and largest result to fetch, e.g. 4GB (default: 1GB)")
      ->transform(CLI::AsSizeValue(false));
  add_farm_options(app, o->farm);
  return [o](const output_options& output) { return submit(*o, output); };
}

}  // namespace kiln::tools
