#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <span>

#include "ir/container/files.hpp"
#include "ir/error.hpp"
#include "jit/tuning/statistics.hpp"
#include "runtime/io_buffers.hpp"
#include "tools/command.hpp"
#include "tools/concurrent_runs.hpp"
#include "tools/counts.hpp"
#include "tools/device_peaks.hpp"
#include "tools/fed_runs.hpp"
#include "tools/html_report.hpp"
#include "tools/launch_profile.hpp"
#include "tools/launch_trace.hpp"
#include "tools/launch_work.hpp"
#include "tools/opened_model.hpp"
#include "tools/size_sweep.hpp"
#include "tools/tiered_runs.hpp"
#include "tools/tuning_report.hpp"

namespace kiln::tools {
namespace {

using clock = std::chrono::steady_clock;

struct options : model_options {
  int runs = 100, warmup = 5, tensor_sets = 1, streams = 1;
  std::string duration;
  bool per_kernel = false;
  std::string html, trace, times, output_dir, sweep;
  std::vector<std::string> feeds, counters;
};

double milliseconds_since(clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(clock::now() - begin).count();
}

// Sets of tensors that runs use in turn, as callers with pointers of their own do.
class tensor_turns {
 public:
  tensor_turns(const executable& exe, int count) {
    for (int i = 0; i < count; ++i) sets_.push_back(std::make_unique<io_buffers>(exe));
  }
  io_buffers& next() { return *(last_ = sets_[turn_++ % sets_.size()].get()); }
  io_buffers& last() { return *last_; }
  void start(fed_runs& fed) {
    for (auto& set : sets_) fed.start(*set);
  }

 private:
  std::vector<std::unique_ptr<io_buffers>> sets_;
  io_buffers* last_ = nullptr;
  std::size_t turn_ = 0;
};

// Milliseconds of one run when the next is given to the stream before it ends.
double time_queued(const executable& exe, execution_context& context, tensor_turns& turns, fed_runs& fed, int runs) {
  device_stream& stream = context.stream();
  auto begin = clock::now();
  for (int i = 0; i < runs; ++i) {
    io_buffers& buffers = turns.next();
    exe.run(context, buffers.inputs(), buffers.outputs(), stream);
    fed.next(buffers, exe.target(), &stream);
  }
  exe.target().synchronize(&stream);
  return milliseconds_since(begin) / runs;
}

// Median milliseconds that the calling thread needs to give one run to a stream where nothing is under way.
double time_host(const executable& exe, execution_context& context, tensor_turns& turns, fed_runs& fed, int runs) {
  device_stream& stream = context.stream();
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) {
    exe.target().synchronize(&stream);
    io_buffers& buffers = turns.next();
    auto begin = clock::now();
    exe.run(context, buffers.inputs(), buffers.outputs(), stream);
    times.push_back(milliseconds_since(begin));
    fed.next(buffers, exe.target(), &stream);
  }
  exe.target().synchronize(&stream);
  std::sort(times.begin(), times.end());
  return percentile(times, 0.5);
}

// A list of milliseconds, one for each measured run, in order.
void write_times(const std::string& file, const std::vector<double>& times) {
  const std::string text = nlohmann::ordered_json(times).dump() + "\n";
  container::output_file out(file);
  out.write(std::as_bytes(std::span(text)));
  out.commit();
}

// `all_ms` is how long all of the runs took together.
void add_times(nlohmann::ordered_json& document, const std::vector<double>& times, double all_ms) {
  std::vector<double> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  document["p50_ms"] = percentile(sorted, 0.5);
  document["p90_ms"] = percentile(sorted, 0.9);
  document["p99_ms"] = percentile(sorted, 0.99);
  document["min_ms"] = sorted.front();
  document["mean_ms"] = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  document["runs_per_second"] = 1000.0 * static_cast<double>(times.size()) / all_ms;
}

// How long to measure: --duration, and at least -n runs where that is given too.
run_goal goal_of(const options& o, bool runs_given) {
  if (o.duration.empty()) return {.runs = o.runs};
  return {.runs = runs_given ? o.runs : 1, .ms = parse_duration_ms(o.duration, "--duration")};
}

// The slowest launch first, each with its shares of the device's peaks, and those that are far from both once more.
void print_launches(nlohmann::ordered_json rows) {
  print("  launches timed one by one, without a graph:\n");
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a["ms"].template get<double>() > b["ms"].template get<double>();
  });
  for (const auto& r : rows) {
    const std::string shares = shares_text(r);
    print("  {:>9.4f} ms  {:<40} {}{}{}\n", r["ms"].get<double>(), r["symbol"].get<std::string>(),
          r["origin"].get<std::string>().substr(0, 60), shares.empty() ? "" : "  ", shares);
  }
  for (const auto& r : rows)
    if (r["far_from_peaks"].get<bool>())
      print("  far from the device's peaks: {} ({})\n", r["symbol"].get<std::string>(), shares_text(r));
}

// Prints the measurement as text, without --json.
void print_measurement(const options& o, const opened_model& model, const nlohmann::ordered_json& document, bool host) {
  print("{} on {} ({}{})\n", o.file, document["device_description"].get<std::string>(),
        document["target"].get<std::string>(), threads_text(document));
  print("  read {:.1f} ms, finalize {:.1f} ms ({} cached, {} compiled), load {:.1f} ms, first run {:.2f} ms\n",
        model.read_ms(), model.instance().finalize_ms(), model.instance().report().hits,
        model.instance().report().misses, model.instance().load_ms(), model.first_run_ms());
  print("  {} runs: median {:.3f} ms, 90 % {:.3f}, 99 % {:.3f}, least {:.3f}\n", document["runs"].get<std::size_t>(),
        document["p50_ms"].get<double>(), document["p90_ms"].get<double>(), document["p99_ms"].get<double>(),
        document["min_ms"].get<double>());
  if (o.streams > 1) print_concurrency(document["concurrency"]);
  if (!host) {
    print("  queued without waiting: {:.3f} ms a run; the host gives a run away in {:.1f} us\n",
          document["queued_ms"].get<double>(), 1000 * document["host_ms"].get<double>());
    print("  graph: {}\n", document["graph"].dump());
  }
  if (document.contains("tuning")) print_tiers(document["tuning"]);
  print("  {}, {}, {} interpreted; peak memory {:.1f} MB\n", counted(document["kernels"].get<int>(), "kernel"),
        counted(document["launches"].get<int>(), "launch", "launches"), document["interpreted"].get<int>(),
        document["peak_memory_bytes"].get<double>() / (1024 * 1024));
  if (!o.per_kernel) return;
  print_launches(document["per_kernel"]);
}

int measure_sweep(const options& o, const output_options& output) {
  const size_sweep sweep = parse_sweep(o.sweep);
  opened_model model(at_size(o, sweep, sweep.sizes.front()), output);
  const auto sizes = measure_sizes(model, o, sweep, o.runs, o.warmup);
  nlohmann::ordered_json document = model.describe();
  for (const char* of_one_size : {"load_ms", "finalize_ms", "first_run_ms"}) document.erase(of_one_size);
  document["runs"] = o.runs;
  document["sweep"] = sizes;
  output.print(document, [&] {
    print("{} on {} ({}{}), {} runs of each size\n", o.file, document["device_description"].get<std::string>(),
          document["target"].get<std::string>(), threads_text(document), o.runs);
    print_sizes(sizes);
  });
  return 0;
}

int measure(options o, bool runs_given, const output_options& output) {
  const run_goal goal = goal_of(o, runs_given);
  if (goal.ms > 0 && !(o.feeds.empty() && o.counters.empty()))
    throw error(error_kind::usage, "--duration: what is fed has room for a number of runs; give -n instead");
  // A cache that is fed is updated where it is.
  for (const std::string& feed : o.feeds) o.updated_inputs.push_back(split_assignment(feed, "--feed").second);
  opened_model model(o, output);
  model.run_once();
  auto tiers = o.tune == "off" ? nlohmann::ordered_json() : measure_tiers(model, o.runs, o.warmup);
  const executable& exe = model.executable();
  execution_context context = exe.make_context(model.instance().graphs().options());
  if (o.tensor_sets > 1 && !(o.feeds.empty() && o.counters.empty()))
    throw error(error_kind::usage, "--tensor-sets: what is fed stays in one set of tensors");
  tensor_turns turns(exe, o.tensor_sets);
  fed_runs fed(exe.plan(), o.feeds, o.counters, model.inputs());
  turns.start(fed);
  // `--graph auto` measures with runs of its own; a fed output is written by the next one, so the last stays where it
  // was.
  auto run = [&](bool last) {
    io_buffers& buffers = turns.next();
    auto begin = clock::now();
    exe.run(context, buffers.inputs(), buffers.outputs());
    if (!last) fed.next(buffers, exe.target(), &context.stream());
    return milliseconds_since(begin);
  };
  for (int i = 0; i < o.warmup || context.measuring(); ++i) {
    run(false);
    if (!fed.empty() && (i + 1) % o.runs == 0) turns.start(fed);  // counters stay where the model has room for them
  }
  model.instance().graphs().keep(context);
  turns.start(fed);
  std::vector<double> times;
  times.reserve(static_cast<std::size_t>(o.runs));
  auto first = clock::now();
  for (int i = 0; !goal.reached(i, milliseconds_since(first)); ++i) times.push_back(run(i + 1 == goal.runs));
  double all_ms = milliseconds_since(first);
  if (!o.output_dir.empty()) model.write_outputs(o.output_dir, turns.last().download());
  auto document = model.describe();
  if (!tiers.is_null()) document["tuning"] = tiers;
  add_times(document, times, all_ms);
  bool host = exe.target().info().host_memory;
  turns.start(fed);
  document["queued_ms"] = host ? document["mean_ms"].get<double>() : time_queued(exe, context, turns, fed, o.runs);
  turns.start(fed);
  document["host_ms"] =
      host ? document["mean_ms"].get<double>() : time_host(exe, context, turns, fed, std::min(o.runs, 50));
  document["graph"] = describe(context.report(), context.decision(), model.instance().graphs(), exe.target());
  document["runs"] = times.size();
  if (o.streams > 1)
    document["concurrency"] =
        measure_concurrently(exe, model.instance().graphs().options(), model.inputs(), o.streams, o.warmup, goal);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  document["peak_memory_bytes"] = static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
  document["per_kernel_mode"] = "eager";
  document["per_kernel"] = o.per_kernel || !o.html.empty() || !o.trace.empty()
                               ? profile_launches(exe, turns.last(), std::clamp(o.runs, 1, 20))
                               : nlohmann::ordered_json::array();
  if (!document["per_kernel"].empty()) {
    add_operations(document["per_kernel"], model.instance().bound(), o.workers);
    const device_peaks peaks = measure_peaks(exe.target());
    document["peaks"] = {{"bytes_per_second", peaks.bandwidth}, {"matrix_operations_per_second", peaks.matrix_rate}};
    add_shares(document["per_kernel"], peaks);
  }
  if (!o.html.empty()) write_html_report(o.html, document, times);
  if (!o.trace.empty()) write_launch_trace(o.trace, document);
  if (!o.times.empty()) write_times(o.times, times);
  output.print(document, [&] { print_measurement(o, model, document, host); });
  return 0;
}

}  // namespace

action declare_perf(CLI::App& app) {
  auto o = std::make_shared<options>();
  add_model_options(app, *o);
  CLI::Option* runs = app.add_option("-n,--iterations", o->runs, "Measured runs")->check(CLI::PositiveNumber);
  app.add_option("--duration", o->duration,
                 "Measure for this long, e.g. 10s, and at least as many runs as -n says where it is given");
  app.add_option("--concurrency", o->streams,
                 "Then also measure throughput and latency with this many callers at once, as many runs each")
      ->check(CLI::Range(1, 256));
  app.add_option("--warmup", o->warmup, "Runs before them")->check(CLI::NonNegativeNumber);
  app.add_flag("--per-kernel", o->per_kernel, "Time every launch, in runs of their own");
  app.add_option("--html", o->html, "Write a page with plots");
  app.add_option("--trace", o->trace, "Write the launches of a run for https://ui.perfetto.dev");
  app.add_option("--times", o->times, "Write the milliseconds of every measured run, as a JSON list");
  app.add_option("--feed", o->feeds,
                 "OUTPUT=INPUT: what a run writes is what the next one reads, in the memory of the device");
  app.add_option("--count-up", o->counters, "NAME of an integer input with one element that is one more on every run");
  app.add_option("--tensor-sets", o->tensor_sets, "Sets of tensors that runs use in turn")->check(CLI::Range(1, 64));
  app.add_option("--output-dir", o->output_dir, "Folder for NAME.npy of every output of the last measured run");
  app.add_option("--sweep", o->sweep,
                 "NAME=MIN:MAX measures MIN, the powers of two between them, and MAX of an open dimension in one "
                 "session; or NAME=N,N,...");
  std::vector<CLI::Option*> of_one_size;
  for (const char* name : {"--duration", "--concurrency", "--per-kernel", "--html", "--trace", "--times", "--feed",
                           "--count-up", "--tensor-sets", "--output-dir", "--tune"})
    of_one_size.push_back(app.get_option(name));
  return [o, runs, of_one_size](const output_options& output) {
    if (o->sweep.empty()) return measure(*o, runs->count() > 0, output);
    for (const CLI::Option* option : of_one_size)
      if (option->count() > 0)
        throw error(error_kind::usage, fmt::format("--sweep: {} is for one size", option->get_name()));
    return measure_sweep(*o, output);
  };
}

}  // namespace kiln::tools
