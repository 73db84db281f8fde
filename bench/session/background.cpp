#include "bench/session/background.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "bench/session/sizes.hpp"
#include "session/session.hpp"

namespace kiln::bench {
namespace {

using clock = std::chrono::steady_clock;

double milliseconds_since(clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(clock::now() - begin).count();
}

std::vector<literal> inputs_of(const instance& at) {
  std::vector<literal> inputs;
  for (const plan_port& port : at.executable().plan().inputs) inputs.push_back(random_data(port.type));
  return inputs;
}

void print(const char* what, std::vector<double> times, double usual) {
  if (times.empty()) return;
  std::ranges::sort(times);
  const double high = times[times.size() - 1 - times.size() / 100];
  fmt::print("{:<10} {:>7} runs: median {:.3f} ms, 99 % {:.3f} ms ({:.2f} of the median before), most {:.3f} ms\n",
             what, times.size(), times[times.size() / 2], high, high / usual, times.back());
}

}  // namespace

int measure_background(int argc, char** argv, const std::string& device) {
  const size_ranges ranges = parse_ranges(argv[3]);
  const double limit_ms = 1000 * std::atof(argv[4]);
  if (ranges.empty()) return 2;
  session_options options{.device = device};
  if (argc > 5) options.cache.folder = argv[5];
  else options.cache.disabled = true;
  options.specialization = specialization::lazy;
  session s(argv[2], options);
  dim_bindings first, hot;
  for (const auto& [symbol, range] : s.portable().symbols) {
    const auto own = ranges.find(symbol);
    first[symbol] = own == ranges.end() ? std::max<std::int64_t>(range.min, 1) : own->second.first;
    hot[symbol] = own == ranges.end() ? first[symbol] : own->second.second;
  }
  for (int i = 0; i < 3; ++i) {
    const auto at = s.at(first);
    at->run(inputs_of(*at));
  }
  while (!s.idle()) std::this_thread::sleep_for(std::chrono::milliseconds(5));

  const std::vector<literal> inputs = inputs_of(*s.at(hot));
  s.at(hot)->run(inputs);
  std::vector<double> before, meanwhile, after;
  double asked = 0, used = 0;
  for (const auto begin = clock::now(); milliseconds_since(begin) < limit_ms;) {
    const bool idle = s.idle();
    if (!idle && asked == 0) asked = milliseconds_since(begin);
    if (idle && asked > 0 && used == 0) used = milliseconds_since(begin);
    const auto run = clock::now();
    s.at(hot)->run(inputs);
    (asked == 0 ? before : used == 0 ? meanwhile : after).push_back(milliseconds_since(run));
  }
  if (before.empty() || used == 0) {
    fmt::print("no exact kernels came in {:.1f} s\n", limit_ms / 1000);
    return 1;
  }
  std::ranges::sort(before);
  const double usual = before[before.size() / 2];
  fmt::print("exact kernels asked for after {:.2f} s, used after {:.2f} s\n", asked / 1000, used / 1000);
  print("before", before, usual);
  print("meanwhile", meanwhile, usual);
  print("after", after, usual);
  return 0;
}

}  // namespace kiln::bench
