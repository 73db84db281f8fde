#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>

#include "ir/error.hpp"
#include "tools/command.hpp"
#include "tools/counts.hpp"
#include "tools/interruption.hpp"
#include "tools/model_options.hpp"
#include "tools/process_limits.hpp"
#include "tools/progress.hpp"
#include "tools/warm_sinks.hpp"
#include "tools/warm_sources.hpp"
#include "tools/worker_choice.hpp"

namespace kiln::tools {
namespace {

using json = nlohmann::ordered_json;
using clock = std::chrono::steady_clock;

struct options {
  warm_request request;
  cache_choice cache;
  std::string archive;
  worker_choice workers;
  limit_options limits;
  bool embed = false;
  int threads = 0;
};

json describe(const warm_failure& f) { return {{"file", f.file}, {"error_kind", name(f.kind)}, {"error", f.message}}; }

// One line on standard error, as of every error.
void say(const warm_failure& f) {
  std::string line =
      fmt::format("kiln: {}: {}{}", name(f.kind), f.message.starts_with(f.file) ? "" : f.file + ": ", f.message);
  std::ranges::replace(line, '\n', ' ');
  note("{}\n", line);
}

// One event for each kernel, in the plan's order.
json describe(const warm_sources& sources, const std::vector<warm_result>& results) {
  auto events = json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const warm_kernel& k = sources.plan.kernels()[i];
    auto files = json::array();
    for (std::size_t s : k.sources) files.push_back(sources.files[s]);
    events.push_back({{"symbol", k.symbol},
                      {"key", k.key.hash().hex()},
                      {"target", sources.plan.targets()[k.target].target.name},
                      {"state", enum_name(results[i].state)},
                      {"ms", results[i].ms},
                      {"files", files}});
    if (results[i].state == warm_state::failed)
      events.back().update({{"error_kind", name(results[i].why)}, {"error", results[i].message}});
  }
  return events;
}

int fill(const options& o, const output_options& output) {
  interruption stop(o.limits.duration());
  auto began = clock::now();
  if (o.cache.disabled && o.archive.empty() && !o.embed)
    throw error(error_kind::usage, "--no-cache leaves nowhere to put kernels: give --archive FILE or --embed");
  const cache_options keys = cache_options_of(o.cache);
  warm_request request = o.request;
  request.consent = keys.consent;
  warm_sources sources = collect_sources(request, o.threads, stop.token());
  working_cache cache(o.cache);
  warm_sinks sinks(o.archive, o.embed, sources);
  sinks.preload(cache.get());

  progress_bar progress("warming", output);
  jit_options jit;
  jit.cache = &cache.get();
  jit.threads = o.threads;
  jit.workers = workers_for_files(o.workers);
  jit.progress = [&](std::size_t done, std::size_t total) { progress.update(done, total); };
  auto results = warm(sources.plan, jit, stop.token());
  progress.finish();
  std::array<std::size_t, enum_table<warm_state>::names.size()> counts{};
  for (std::size_t i = 0; i < results.size(); ++i) {
    ++counts[static_cast<std::size_t>(results[i].state)];
    if (results[i].state == warm_state::failed)
      sources.failures.push_back(
          {sources.files[sources.plan.kernels()[i].sources.front()], results[i].why, results[i].message});
  }
  const signing_key* key = keys.sign_with ? &*keys.sign_with : keys.consent.user ? keys.consent.user->own() : nullptr;
  auto written = sinks.write(cache.get(), key, results, sources.failures);
  if (!stop.requested()) pack_weights(sources, keys.consent, cache.get(), sources.failures);

  auto count = [&](warm_state s) { return counts[static_cast<std::size_t>(s)]; };
  double seconds = std::chrono::duration<double>(clock::now() - began).count();
  auto failures = json::array();
  for (const warm_failure& f : sources.failures) failures.push_back(describe(f));
  json document{{"files", sources.files.size()},
                {"kernels", results.size()},
                {"compiled", count(warm_state::compiled)},
                {"present", count(warm_state::present)},
                {"failed", count(warm_state::failed)},
                {"left", count(warm_state::left)},
                {"duplicates", sources.plan.duplicates()},
                {"seconds", seconds},
                {"rate", seconds > 0 ? static_cast<double>(count(warm_state::compiled)) / seconds : 0},
                {"interrupted", stop.requested()},
                {"cache", cache.folder().string()},
                {"archive", written.archive},
                {"embedded", written.embedded},
                {"failures", failures},
                {"events", describe(sources, results)}};
  for (const warm_failure& f : sources.failures) say(f);
  if (stop.expired())
    note("kiln: timed_out: --time-limit {} has passed: {} kernels are left, the others are kept; call it again\n",
         o.limits.time, count(warm_state::left));
  output.print(document, [&] {
    print(
        "{} of {}: {} compiled, {} there already, {} failed, {} left; {} made once; {:.2f} "
        "s\n",
        counted(results.size(), "kernel"), counted(sources.files.size() - sources.failures.size(), "file"),
        count(warm_state::compiled), count(warm_state::present), count(warm_state::failed), count(warm_state::left),
        counted(sources.plan.duplicates(), "shared one"), seconds);
  });
  if (stop.expired()) return exit_code(error_kind::timed_out);
  if (stop.requested()) return interrupted_code;
  return sources.failures.empty() ? 0 : exit_code(sources.failures.front().kind);
}

}  // namespace

action declare_warm(CLI::App& app) {
  auto o = std::make_shared<options>();
  app.add_option("FILE", o->request.files, ".kiln files");
  app.add_option("--target", o->request.targets, "Target, see kiln targets; may be given several times")
      ->allow_extra_args(false);
  app.add_option("--device", o->request.device,
                 "Also for the processor of this device, with its driver: host, hip:0 or cuda:0");
  app.add_option("--dim", o->request.dims, "NAME=VALUE[,VALUE...] for an open dimension; several values: each of them")
      ->allow_extra_args(false);
  app.add_option("--manifest", o->request.manifest,
                 "List of files, one per line with its own --target and --dim, or JSON");
  app.add_option("--replay", o->request.replay,
                 "Log of kiln run --record-misses: what another machine missed; the files named here are searched for "
                 "its kernels, too");
  add_cache_option(app, o->cache);
  add_remote_option(app, o->cache);
  app.add_flag("--no-cache", o->cache.disabled,
               "Keep nothing in the cache folder: the archive or the files get everything");
  app.add_option("--archive", o->archive, "Also add the entries to this archive (.tar.zst), for kiln cache import");
  app.add_flag("--embed", o->embed, "Also put each file's entries into the file itself");
  app.add_option("--threads", o->threads, "Kernels at once (0: as many as processors)")->check(CLI::Range(0, 4096));
  add_worker_options(app, o->workers);
  add_limit_options(app, o->limits, "Begin no kernel when this much time has passed, and end with code 4, e.g. 30s");
  // Before the compile workers are forked, which the limit is for as well.
  app.parse_complete_callback([o] { process_limits::limit_memory(o->limits); });
  return [o](const output_options& output) { return fill(*o, output); };
}

}  // namespace kiln::tools
