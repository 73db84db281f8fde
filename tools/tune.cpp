#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "ir/container/container.hpp"
#include "ir/error.hpp"
#include "jit/comparison.hpp"
#include "jit/tuning/replace_kernels.hpp"
#include "jit/tuning/statistics.hpp"
#include "jit/tuning/tuning_hints.hpp"
#include "tools/command.hpp"
#include "tools/counts.hpp"
#include "tools/opened_model.hpp"
#include "tools/tuning_report.hpp"

namespace kiln::tools {
namespace {

using clock = std::chrono::steady_clock;
using json = nlohmann::ordered_json;

constexpr int measured_runs = 15, warm_runs = 3;
constexpr double longest_measuring_ms = 4000;

struct options : model_options {
  std::string budget = "60s";
  bool exhaustive = false, quick = false, again = false, cold = false, embed = false;
};

double milliseconds_since(clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(clock::now() - begin).count();
}

// Whole runs of a program, the way that --graph asks for; what is found out about graphs meanwhile is kept.
struct runner {
  const executable& exe;
  const graph_memory graphs;
  execution_context context;
  io_buffers tensors;
  std::vector<double> times;
  runner(const executable& e, graph_memory memory, const std::vector<literal>& data)
      : exe(e), graphs(std::move(memory)), context(e.make_context(graphs.options())), tensors(e) {
    tensors.upload(data);
    exe.settle(context, tensors.inputs(), tensors.outputs());
    graphs.keep(context);
  }
  void run(bool counts) {
    auto begin = clock::now();
    exe.run(context, tensors.inputs(), tensors.outputs());
    if (counts) times.push_back(milliseconds_since(begin));
  }
};

// Medians of whole runs before and after, taken in turn.
std::pair<timing, timing> measure_both(runner& a, runner& b) {
  auto begin = clock::now();
  for (int i = 0;
       i < warm_runs + measured_runs && (i < warm_runs + 3 || milliseconds_since(begin) < longest_measuring_ms); ++i)
    for (runner* r : {&a, &b}) r->run(i >= warm_runs);
  return {summarize(a.times), summarize(b.times)};
}

// The largest ‖after - before‖ / ‖before‖ of the outputs.
double difference(const executable& before, const executable& after, const std::vector<literal>& inputs) {
  auto expected = before.evaluate(inputs), got = after.evaluate(inputs);
  double largest = 0;
  for (std::size_t i = 0; i < got.size(); ++i) largest = std::max(largest, compare(got[i], expected[i]).relative_norm);
  return largest;
}

// Writes the tuning records of the model's kernels into the file as hints, beside its hints for other devices.
std::size_t embed(const opened_model& model, const std::string& file) {
  container_extras extras = read_extras(file);
  std::map<content_hash, tuning_record> records;
  if (!extras.tuning_hints.empty())
    for (tuning_record& r : parse_hints(extras.tuning_hints)) records.emplace(r.identity.hash(), std::move(r));
  std::size_t count = 0;
  for (const kernel_group& g : group_code_objects(model.instance().bound()).list)
    if (auto r = model.resources().records().find(g.portable.payload, g.inputs, g.outputs)) {
      auto [known, fresh] = records.try_emplace(r->identity.hash(), *r);
      if (!fresh) known->second = merge(known->second, *r);
      ++count;
    }
  std::vector<tuning_record> list;
  for (auto& [hash, r] : records) list.push_back(std::move(r));
  extras.tuning_hints = hints_text(list);
  replace_extras(file, file, extras);
  return count;
}

int tune_file(options o, const output_options& output) {
  const double budget = parse_duration_ms(o.budget, "--budget");
  if (o.exhaustive && o.quick) throw error(error_kind::usage, "--exhaustive and --quick exclude each other");
  tuner_options tuning{.effort = o.exhaustive ? tuning_effort::exhaustive
                                 : o.quick    ? tuning_effort::quick
                                              : tuning_effort::full,
                       .again = o.again};
  tuning.bench.cold_cache = o.cold;
  auto begin = clock::now();
  opened_model model(o, output);
  model.run_once();
  const double first_output_ms = milliseconds_since(begin);
  begin = clock::now();
  auto results = model.tune(tuning, budget);
  const double tuning_ms = milliseconds_since(begin);

  // The kernels of the defaults, whatever the model began with, against the winners.
  jit_options plain = model.resources().compiling();
  plain.only_if_cached = false;
  plain.records = nullptr;
  program standard = compile_bytecode(model.instance().bound(), plain);
  jit_options tuned = model.resources().compiling();
  tuned.only_if_cached = false;
  program best = compile_bytecode(model.instance().bound(), tuned);
  executable before = load(standard, model.resources().device(), model.resources().planning()),
             after = load(best, model.resources().device(), model.resources().planning());
  auto graphs_of = [&](const program& native) {
    return graph_memory(model.resources().records(), model.resources().device(), native,
                        graph_policy_named(o.graph).value(), o.again);
  };
  runner plain_runs(before, graphs_of(standard), model.inputs()), tuned_runs(after, graphs_of(best), model.inputs());
  auto [slow, fast] = measure_both(plain_runs, tuned_runs);

  json document{{"file", o.file},
                {"device", model.resources().device().info().name},
                {"device_class", model.resources().records().device_class()},
                {"effort", enum_name(tuning.effort)},
                {"budget_ms", budget}};
  document["seconds"] = tuning_ms / 1e3;
  document["first_output_ms"] = first_output_ms;
  document["tier0_ms"] = slow.median;
  document["tier1_ms"] = fast.median;
  document["speedup"] = fast.median > 0 ? slow.median / fast.median : 1.0;
  document["difference"] = difference(before, after, model.inputs());
  document["graph"] = describe(tuned_runs.context.report(), tuned_runs.context.decision(), tuned_runs.graphs,
                               model.resources().device());
  document["tuning"] = describe_tuning(model);
  auto rows = json::array();
  for (const kernel_tuning& t : results) rows.push_back(describe(t));
  document["kernels"] = rows;
  if (o.embed) document["embedded"] = embed(model, o.file);
  output.print(document, [&] {
    print("{} on {}: {}, {:.1f} s of tuning\n", o.file, model.resources().device().info().description,
          counted(results.size(), "kernel"), tuning_ms / 1e3);
    print("  {:>8}  {:>4}  {:>9}  {:>9}  {:>7}  {:>5}  {:<28}  {}\n", "ms/run", "uses", "default", "tuned", "speedup",
          "tried", "kernel", "winner");
    for (const kernel_tuning& t : results) {
      std::string winner = t.outcome == kernel_tuning::state::not_reached || t.outcome == kernel_tuning::state::failed
                               ? t.reason
                           : t.session.winner.empty() ? "default"
                                                      : "";
      if (winner.empty())
        for (const auto& [name, value] : t.session.winner)
          winner += fmt::format("{}{}={}", winner.empty() ? "" : " ", name, value);
      print("  {:>8.3f}  {:>4}  {:>9.4f}  {:>9.4f}  {:>7.2f}  {:>5}  {:<28}  {}\n", t.ms_per_run, t.occurrences,
            t.session.default_ms, t.session.winner_ms, t.gain(), t.session.candidates.size(), t.symbol.substr(0, 28),
            winner);
    }
    if (std::ranges::all_of(results, [](const kernel_tuning& t) { return t.session.winner.empty(); }))
      return print("  nothing is faster than the default configurations: a run takes {:.3f} ms\n", slow.median);
    print(
        "  a run: {:.3f} ms with default configurations, {:.3f} ms tuned, {:.2f} times as fast; outputs differ by "
        "{:.2g}\n",
        slow.median, fast.median, document["speedup"].get<double>(), document["difference"].get<double>());
  });
  return 0;
}

}  // namespace

action declare_tune(CLI::App& app) {
  auto o = std::make_shared<options>();
  add_model_options(app, *o);
  app.remove_option(app.get_option("--tune"));
  app.remove_option(app.get_option("--tune-budget"));
  app.remove_option(app.get_option("--specialize"));
  app.add_option("--budget", o->budget, "Wall-clock limit, such as 30s or 5m");
  app.add_flag("--exhaustive", o->exhaustive, "Every legal configuration of every kernel (at most 64 without)");
  app.add_flag("--quick", o->quick, "At most 8 configurations of each kernel");
  app.add_flag("--again", o->again,
               "Also kernels that have been tuned with as much effort before, and whether graphs are faster");
  app.add_flag("--cold", o->cold, "Write over the device's caches before each timed run");
  app.add_flag("--embed", o->embed, "Put what is known into the file, as hints for other machines");
  return [o](const output_options& output) { return tune_file(*o, output); };
}

}  // namespace kiln::tools
