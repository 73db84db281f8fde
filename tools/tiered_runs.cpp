#include "tools/tiered_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "jit/tuning/statistics.hpp"
#include "jit/tuning/tuned_runner.hpp"
#include "tools/tuning_report.hpp"

namespace kiln::tools {
namespace {

using clock = std::chrono::steady_clock;
using json = nlohmann::ordered_json;

json describe(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return {{"runs", times.size()}, {"p50_ms", percentile(times, 0.5)}, {"p99_ms", percentile(times, 0.99)}};
}

}  // namespace

json measure_tiers(opened_model& opened, int runs, int warmup) {
  json before = describe_tuning(opened);
  background_tuner& tuner = opened.instance().tuning_in_background();
  tuned_runner model(tuner, opened.instance().graphs().options(), false);
  io_buffers tensors(opened.executable());
  tensors.upload(opened.inputs());
  auto run_while = [&](auto more) {
    std::vector<double> times;
    while (more(times.size())) {
      auto begin = clock::now();
      model.run(tensors.inputs(), tensors.outputs());
      times.push_back(std::chrono::duration<double, std::milli>(clock::now() - begin).count());
    }
    return times;
  };
  auto fewer_than = [](int count) {
    return [count](std::size_t done) { return done < static_cast<std::size_t>(count); };
  };
  run_while([&](std::size_t done) { return done < static_cast<std::size_t>(warmup) || model.context().measuring(); });
  json tier0 = describe(run_while(fewer_than(runs)));
  model.start(opened.inputs());
  json meanwhile = describe(run_while([&](std::size_t) { return !tuner.progress().done; }));
  tuner.finish();
  run_while([&](std::size_t done) { return done < static_cast<std::size_t>(warmup) || model.context().measuring(); });
  json tier1 = describe(run_while(fewer_than(runs)));
  opened.instance().adopt(model.executable());

  tuning_progress progress = tuner.progress();
  json result{{"tier", progress.tuned ? 1 : 0},
              {"kernels", progress.kernels},
              {"tuned", progress.tuned},
              {"progress",
               static_cast<double>(progress.tuned) / static_cast<double>(std::max<std::size_t>(progress.kernels, 1))}};
  result["gain"] = tier0["p50_ms"].get<double>() / tier1["p50_ms"].get<double>();
  result["seconds"] = progress.seconds;
  result["tier_before"] = before["tier"];
  result["improved"] = progress.improved;
  result["swaps"] = progress.swaps;
  result["p99_ratio"] = meanwhile["p99_ms"].get<double>() / tier0["p99_ms"].get<double>();
  result["tier0"] = tier0;
  result["during"] = meanwhile;
  result["tier1"] = tier1;
  if (std::string problem = tuner.problem(); !problem.empty()) result["problem"] = problem;
  return result;
}

void print_tiers(const json& tuning) {
  print("  tier {}: {} of {} kernels tuned, gain {:.2f}", tuning["tier"].get<int>(), tuning["tuned"].get<int>(),
        tuning["kernels"].get<int>(), tuning["gain"].get<double>());
  if (tuning.contains("during"))
    print("; {:.1f} s of tuning, 99 % meanwhile {:.3f} ms ({:.2f} times as long as before), {} swaps",
          tuning["seconds"].get<double>(), tuning["during"]["p99_ms"].get<double>(), tuning["p99_ratio"].get<double>(),
          tuning["swaps"].get<int>());
  if (tuning.contains("problem")) print("; {}", tuning["problem"].get<std::string>());
  print("\n");
}

}  // namespace kiln::tools
