// Microseconds for one kernel of a chain that follow each other, as in a run of a small network: on one thread, on the
// thread team (inside of a run, where its members stay awake; and with its members asleep when the chain begins), and
// on a pool whose threads are woken for every kernel. All in one process, in turn. The work of a kernel is the same
// everywhere, and its sum is checked.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string_view>
#include <vector>

#include "bench/cpu_team/woken_pool.hpp"
#include "runtime/thread_pool.hpp"

using namespace kiln;

namespace {

using clock_type = std::chrono::steady_clock;

double microseconds_since(clock_type::time_point begin) {
  return std::chrono::duration<double, std::micro>(clock_type::now() - begin).count();
}

// A kernel: every item of its grid adds ones to its own numbers, `steps` times each. The numbers of an item have a
// cache line of their own.
struct kernel {
  struct alignas(64) line {
    std::array<float, 16> values{};
  };
  std::int64_t steps;
  std::vector<line> lines;
  kernel(std::int64_t items, std::int64_t work) : steps(work), lines(static_cast<std::size_t>(items)) {}
  std::int64_t grid() const { return static_cast<std::int64_t>(lines.size()); }
  void operator()(std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      line sums = lines[static_cast<std::size_t>(i)];
      for (std::int64_t s = 0; s < steps; ++s)
        for (float& v : sums.values) v += 1.0f;
      lines[static_cast<std::size_t>(i)] = sums;
    }
  }
};

struct way {
  std::string_view name;
  std::function<void(kernel&, int chain)> run;
  // Microseconds per kernel, one entry per round.
  std::vector<double> us = {};
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  unsigned threads = 0;
  int chain = 100, rounds = 30;
  bool pin = false;
  CLI::App app{"What a launch costs on the CPU"};
  app.add_option("--threads", threads, "0: all processors");
  app.add_option("--chain", chain, "Kernels that follow each other")->check(CLI::PositiveNumber);
  app.add_option("--rounds", rounds)->check(CLI::PositiveNumber);
  app.add_flag("--pin", pin, "A processor of its own for every member of the team");
  CLI11_PARSE(app, argc, argv);

  thread_pool team(threads, pin);
  bench::woken_pool pool(team.size());
  auto on_team = [&](kernel& k, int count) {
    team.stay_awake(1);
    for (int i = 0; i < count; ++i) team.run(k.grid(), k);
    team.stay_awake(-1);
  };
  std::array<way, 4> ways{{{"one thread",
                            [](kernel& k, int count) {
                              for (int i = 0; i < count; ++i) k(0, k.grid());
                            }},
                           {"team", on_team},
                           {"team, asleep at first", [&](kernel& k, int count) { on_team(k, count); }},
                           {"pool, woken each time", [&](kernel& k, int count) {
                              bench::woken_pool::work work = [&k](std::int64_t begin, std::int64_t end) {
                                k(begin, end);
                              };
                              for (int i = 0; i < count; ++i) pool.run(k.grid(), work);
                            }}}};
  fmt::print("{} threads, chains of {} kernels, medians of {} rounds; us per kernel\n", team.size(), chain, rounds);
  fmt::print("{:>10}", "items");
  for (const way& w : ways) fmt::print("{:>24}", w.name);
  fmt::print("{:>14}\n", "pool / team");
  for (std::int64_t steps : {30, 100, 300, 3000}) {
    const std::int64_t grid = 8 * team.size();
    for (way& w : ways) w.us.clear();
    for (int round = 0; round < rounds; ++round)
      for (way& w : ways) {
        kernel k(grid, steps);
        // Threads sleep after some microseconds without work; the case "team" begins with them awake.
        if (w.name == "team") on_team(k, 3);
        else std::this_thread::sleep_for(std::chrono::milliseconds(4));
        std::ranges::fill(k.lines, kernel::line{});
        auto begin = clock_type::now();
        w.run(k, chain);
        w.us.push_back(microseconds_since(begin) / chain);
        // Sums of ones are exact below 2^24.
        const float expected = static_cast<float>(std::min<std::int64_t>(steps * chain, 1 << 24));
        if (std::ranges::any_of(k.lines, [&](const kernel::line& l) {
              return std::ranges::any_of(l.values, [&](float v) { return v != expected; });
            })) {
          fmt::print(stderr, "{}: wrong sums\n", w.name);
          return 1;
        }
      }
    fmt::print("{:>4}x{:<5}", grid, steps);
    for (const way& w : ways) fmt::print("{:>24.2f}", median(w.us));
    fmt::print("{:>14.2f}\n", median(ways[3].us) / median(ways[1].us));
    std::fflush(stdout);
  }
}
