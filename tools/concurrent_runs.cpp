#include "tools/concurrent_runs.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <exception>
#include <thread>

#include "jit/tuning/statistics.hpp"
#include "runtime/io_buffers.hpp"
#include "tools/terminal.hpp"

namespace kiln::tools {
namespace {

using clock = std::chrono::steady_clock;

double milliseconds(clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

struct caller {
  std::vector<double> times;
  clock::time_point begin, end;
  std::exception_ptr problem;
};

}  // namespace

nlohmann::ordered_json measure_concurrently(const executable& exe, const graph_options& graphs,
                                            std::span<const literal> inputs, int streams, int warmup,
                                            const run_goal& goal) {
  std::vector<caller> callers(static_cast<std::size_t>(streams));
  std::barrier start(streams);
  auto work = [&](caller& c) {
    bool waits = true;
    try {
      execution_context context = exe.make_context(graphs);
      io_buffers tensors(exe);
      tensors.upload(inputs);
      for (int i = 0; i < warmup || context.measuring(); ++i) exe.run(context, tensors.inputs(), tensors.outputs());
      waits = false;
      start.arrive_and_wait();
      c.begin = c.end = clock::now();
      while (!goal.reached(c.times.size(), milliseconds(c.end - c.begin))) {
        const auto before = c.end;
        exe.run(context, tensors.inputs(), tensors.outputs());
        c.end = clock::now();
        c.times.push_back(milliseconds(c.end - before));
      }
    } catch (...) {
      c.problem = std::current_exception();
      if (waits) start.arrive_and_drop();
    }
  };
  {
    std::vector<std::jthread> threads;
    threads.reserve(callers.size());
    try {
      for (caller& c : callers) threads.emplace_back([&work, &c] { work(c); });
    } catch (...) {
      // The callers that have started must not wait for those that have not.
      for (std::size_t i = threads.size(); i < callers.size(); ++i) start.arrive_and_drop();
      throw;
    }
  }
  std::vector<double> times;
  auto begin = clock::time_point::max(), end = clock::time_point::min();
  for (const caller& c : callers) {
    if (c.problem) std::rethrow_exception(c.problem);
    times.insert(times.end(), c.times.begin(), c.times.end());
    begin = std::min(begin, c.begin), end = std::max(end, c.end);
  }
  std::sort(times.begin(), times.end());
  return {{"streams", streams},
          {"runs", times.size()},
          {"runs_per_second", 1000.0 * static_cast<double>(times.size()) / milliseconds(end - begin)},
          {"p50_ms", percentile(times, 0.5)},
          {"p90_ms", percentile(times, 0.9)},
          {"p99_ms", percentile(times, 0.99)},
          {"max_ms", times.back()}};
}

void print_concurrency(const nlohmann::ordered_json& c) {
  print("  {} callers at once: {:.1f} runs/s; median {:.3f} ms, 90 % {:.3f}, 99 % {:.3f}, most {:.3f}\n",
        c["streams"].get<int>(), c["runs_per_second"].get<double>(), c["p50_ms"].get<double>(),
        c["p90_ms"].get<double>(), c["p99_ms"].get<double>(), c["max_ms"].get<double>());
}

}  // namespace kiln::tools
