#include "bench/session/unseen.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

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
};

answer ask(session& s, const dim_bindings& sizes) {
  constexpr double enough_ms = 300;
  constexpr std::size_t fewest = 5;
  const auto begin = clock::now();
  const auto at = s.at(sizes);
  answer result{at->report().misses, milliseconds_since(begin)};
  std::vector<literal> inputs;
  for (value v : at->bound().main().parameters())
    inputs.push_back(literal(v.type(), std::vector<std::byte>(v.type().bytes())));
  const auto run = clock::now();
  at->run(inputs);
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

int measure_unseen(int argc, char** argv) {
  const std::string file = argv[2], dimension = argv[3];
  const std::size_t equals = dimension.find('='), colon = dimension.find(':');
  if (equals == std::string::npos || colon == std::string::npos) return 2;
  const std::string name = dimension.substr(0, equals);
  std::mt19937 engine(1);
  std::uniform_int_distribution<std::int64_t> any(std::strtoll(dimension.c_str() + equals + 1, nullptr, 10),
                                                  std::strtoll(dimension.c_str() + colon + 1, nullptr, 10));
  session_options options;
  if (argc > 5) options.cache.folder = argv[5];
  else options.cache.disabled = true;
  session specialized(file, options);
  options.specialization = specialization::off;
  session general(file, options);

  fmt::print("    size compiled   made ms     first    steady first/steady  specialized   relative speed\n");
  std::vector<double> waits, speeds, made;
  std::size_t compiled = 0;
  const int count = std::atoi(argv[4]);
  for (int i = 0; i <= count; ++i) {
    dim_bindings sizes;
    for (const auto& [symbol, range] : general.portable().symbols) sizes[symbol] = std::max<std::int64_t>(range.min, 1);
    sizes[name] = any(engine);
    const answer a = ask(general, sizes), b = ask(specialized, sizes);
    fmt::print("{:>8} {:>8} {:>9.2f} {:>9.2f} {:>9.2f} {:>12.2f} {:>12.2f} {:>16.2f}\n", sizes[name], a.compiled,
               a.made, a.first, a.steady, a.first / a.steady, b.steady, b.steady / a.steady);
    if (i == 0) continue;  // compiles everything
    compiled += a.compiled;
    waits.push_back(a.first / a.steady);
    speeds.push_back(std::log(b.steady / a.steady));
    made.push_back(a.made);
  }
  double sum = 0;
  for (double speed : speeds) sum += speed;
  fmt::print(
      "after the first size: {} kernels compiled; median: made in {:.2f} ms, first/steady {:.2f} (worst {:.2f}); "
      "relative speed {:.3f} (geometric mean)\n",
      compiled, median(made), median(waits), *std::ranges::max_element(waits),
      std::exp(sum / static_cast<double>(speeds.size())));
  return 0;
}

}  // namespace kiln::bench
