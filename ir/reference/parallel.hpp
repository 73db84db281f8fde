// Splits a loop over the machine's threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace kiln::reference {

// Calls f(begin, end) on disjoint ranges that make up [0, count), on several threads when `count` times `cost` (scalar
// operations per index, roughly) is worth it. f must not throw.
template <class F>
void parallel_for(std::int64_t count, std::int64_t cost, const F& f) {
  constexpr std::int64_t worth_a_thread = 1 << 18;
  std::int64_t wanted = count * std::max<std::int64_t>(cost, 1) / worth_a_thread;
  std::int64_t threads = std::clamp<std::int64_t>(std::min(wanted, count), 1, std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::jthread> others;
  for (std::int64_t t = 1; t < threads; ++t)
    others.emplace_back([&f, begin = count * t / threads, end = count * (t + 1) / threads] { f(begin, end); });
  f(std::int64_t(0), count / threads);
}

}  // namespace kiln::reference
