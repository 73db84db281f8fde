#include "bench/session/many.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "bench/session/sizes.hpp"
#include "runtime/graph/graph_usage.hpp"
#include "session/session.hpp"

namespace kiln::bench {
namespace {

using clock = std::chrono::steady_clock;

double microseconds_since(clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(clock::now() - begin).count();
}

std::size_t resident_bytes() {
  constexpr std::size_t page = 4096;
  std::size_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * page;
}

// A first answer at new sizes, in microseconds.
struct first_answer {
  int number = 0;  // of the sizes, in the order in which they came
  dim_bindings sizes;
  double planned = 0, first = 0, steady = 0;
  std::size_t graphs = 0;  // that it made
  double relative() const { return (planned + first) / steady; }
};

void print_slowest(std::vector<first_answer> answers) {
  constexpr std::size_t shown = 5;
  std::ranges::sort(answers, std::greater(), &first_answer::relative);
  answers.resize(std::min(answers.size(), shown));
  fmt::print("slowest first answers: number, ratio, planning, first run, later runs, graphs made, sizes\n");
  for (const first_answer& a : answers) {
    fmt::print("  {:>6} {:>8.2f} {:>8.1f} {:>8.1f} {:>8.1f} {:>3}  {}\n", a.number, a.relative(), a.planned, a.first,
               a.steady, a.graphs, str(a.sizes));
  }
}

void print(const char* what, std::vector<double> values) {
  std::ranges::sort(values);
  fmt::print("{:<34} {:>10.2f} {:>10.2f} {:>10.2f}\n", what, values[values.size() / 2],
             values[values.size() - 1 - values.size() / 100], values.back());
}

}  // namespace

int measure_many(int argc, char** argv, const std::string& device) {
  std::optional<measurement> asked = parse_measurement(argc, argv, device);
  if (!asked) return 2;
  auto& [file, ranges, count, options] = *asked;
  std::mt19937 engine(1);
  std::size_t compiled = 0;
  options.observer = [&](const session_event& event) {
    if (const auto* e = std::get_if<session_events::finalized>(&event)) compiled += e->report.misses;
  };
  session s(file, options);
  std::vector<double> planning, first, again, relative;
  std::vector<first_answer> answers;
  std::size_t early = 0, launches = 0, arena = 0;
  // The first sizes compile the kernels, the second ones make the template.
  for (int i = -2; i < count; ++i) {
    const dim_bindings sizes = random_sizes(s.portable(), ranges, engine);
    if (i == 0) compiled = 0;
    auto begin = clock::now();
    const auto at = s.at(sizes);
    const double planned = microseconds_since(begin);
    std::vector<literal> inputs;
    for (const plan_port& port : at->executable().plan().inputs) inputs.push_back(random_data(port.type));
    const std::size_t graphs = graphs_of(at->executable().target()).graphs;
    std::size_t graphs_after_first = 0;
    double runs[6];
    for (double& run : runs) {
      begin = clock::now();
      at->run(inputs);
      run = microseconds_since(begin);
      if (&run == runs) graphs_after_first = graphs_of(at->executable().target()).graphs;
    }
    std::sort(runs + 1, runs + 6);
    const double steady = runs[3];
    begin = clock::now();
    s.at(sizes);
    const double found = microseconds_since(begin);
    if (i < 0) continue;
    planning.push_back(planned), first.push_back(runs[0] - steady), again.push_back(found);
    answers.push_back({i, sizes, planned, runs[0], steady, graphs_after_first - std::min(graphs, graphs_after_first)});
    relative.push_back(answers.back().relative());
    launches = std::max(launches, at->executable().plan().report.launches);
    arena = std::max(arena, at->executable().plan().arena_bytes);
    if (i == count / 10) early = resident_bytes();
  }
  const std::size_t end = resident_bytes();
  // Without runs in between, the processor's caches still hold the template.
  std::vector<double> in_a_row;
  for (int i = 0; i < count; ++i) {
    const dim_bindings sizes = random_sizes(s.portable(), ranges, engine);
    const auto begin = clock::now();
    s.at(sizes);
    in_a_row.push_back(microseconds_since(begin));
  }
  fmt::print("{} sets of sizes, {} kernels compiled, at most {} launches; microseconds:\n", count, compiled, launches);
  fmt::print("{:<34} {:>10} {:>10} {:>10}\n", "", "median", "p99", "most");
  print("planning new sizes", std::move(planning));
  print("planning without runs between", std::move(in_a_row));
  print("first run beyond later ones", std::move(first));
  print("the same sizes again", std::move(again));
  print("first answer / later runs (ratio)", std::move(relative));
  print_slowest(std::move(answers));
  fmt::print("largest arena {:.1f} MiB, resident {:.1f} MiB after a tenth, {:.1f} MiB at the end ({:+.1f} %)\n",
             static_cast<double>(arena) / 0x1p20, static_cast<double>(early) / 0x1p20,
             static_cast<double>(end) / 0x1p20, 100 * (static_cast<double>(end) / static_cast<double>(early) - 1));
  return compiled != 0;
}

}  // namespace kiln::bench
