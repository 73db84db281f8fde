#include "bench/session/unseen.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/session/difference.hpp"
#include "bench/session/sizes.hpp"
#include "session/session.hpp"

namespace kiln::bench {
namespace {

using clock = std::chrono::steady_clock;

double milliseconds_since(clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct answer {
  std::size_t compiled = 0;
  double made = 0, first = 0, steady = 0;
  std::size_t arena = 0;  // bytes
  std::vector<literal> outputs;
};

answer ask(session& s, const dim_bindings& sizes) {
  constexpr double enough_ms = 300;
  constexpr std::size_t fewest = 5;
  const auto begin = clock::now();
  const auto at = s.at(sizes);
  answer result{at->report().misses, milliseconds_since(begin), 0, 0, at->executable().plan().arena_bytes, {}};
  std::vector<literal> inputs;
  for (value v : at->bound().main().parameters()) inputs.push_back(random_data(v.type()));
  const auto run = clock::now();
  result.outputs = at->run(inputs);
  result.first = result.made + milliseconds_since(run);
  std::vector<double> times;
  for (const auto start = clock::now(); times.size() < fewest || milliseconds_since(start) < enough_ms;) {
    const auto one = clock::now();
    at->run(inputs);
    times.push_back(milliseconds_since(one));
  }
  result.steady = median(times);
  return result;
}

}  // namespace

int measure_unseen(int argc, char** argv, const std::string& device) {
  const std::string file = argv[2];
  const auto ranges = parse_ranges(argv[3]);
  if (ranges.empty()) return 2;
  std::mt19937 engine(1);
  session_options options{.device = device};
  if (argc > 5) options.cache.folder = argv[5];
  else options.cache.disabled = true;
  options.specialization = specialization::eager;
  session specialized(file, options);
  options.specialization = specialization::off;
  const bool lazy = argc > 6 && std::string_view(argv[6]) == "lazy";
  if (lazy) options.specialization = specialization::lazy;
  session general(file, options);

  fmt::print("compiled   made ms     first    steady first/steady  specialized   relative speed\n");
  std::vector<double> waits, speeds, made, arenas;
  std::size_t compiled = 0, wrong = 0;
  const int count = std::atoi(argv[4]);
  for (int i = 0; i <= count; ++i) {
    const dim_bindings sizes = random_sizes(general.portable(), ranges, engine);
    const answer a = ask(general, sizes), b = ask(specialized, sizes);
    const double differs = difference(a.outputs, b.outputs);
    const bool right = differs <= 1e-3;
    wrong += !right;
    fmt::print("{:>8} {:>9.2f} {:>9.2f} {:>9.2f} {:>12.2f} {:>12.2f} {:>16.2f}  {}{}\n", a.compiled, a.made, a.first,
               a.steady, a.first / a.steady, b.steady, b.steady / a.steady, str(sizes),
               right ? "" : fmt::format("  differs by {:.1e}", differs));
    // The first run compiles everything, so it is not counted. With lazy specialization, general kernels follow in the
    // background.
    if (i == 0) {
      while (!general.idle()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      continue;
    }
    compiled += a.compiled;
    waits.push_back(a.first / a.steady);
    speeds.push_back(std::log(b.steady / a.steady));
    made.push_back(a.made);
    arenas.push_back(static_cast<double>(a.arena) / static_cast<double>(std::max<std::size_t>(b.arena, 1)));
  }
  double sum = 0;
  for (double speed : speeds) sum += speed;
  fmt::print(
      "{} sizes differ from specialized kernels; after the first size: {} kernels compiled; median: made in {:.2f} ms, "
      "first/steady {:.2f} (worst {:.2f}), "
      "arena {:.2f} of that of the specialized plan (most {:.2f}); relative speed {:.3f} (geometric mean)\n",
      wrong, compiled, median(made), median(waits), *std::ranges::max_element(waits), median(arenas),
      *std::ranges::max_element(arenas), std::exp(sum / static_cast<double>(speeds.size())));
  return wrong != 0;
}

}  // namespace kiln::bench
