#include "ir/reference/parallel.hpp"

#include <algorithm>
#include <future>
#include <thread>
#include <vector>

namespace kiln::reference {

void parallel_for(std::int64_t count, std::int64_t cost, const std::function<void(std::int64_t, std::int64_t)>& f) {
  constexpr std::int64_t worth_a_thread = 1 << 18;
  std::int64_t wanted = count * std::max<std::int64_t>(cost, 1) / worth_a_thread;
  std::int64_t threads =
      std::clamp<std::int64_t>(std::min(wanted, count), 1, std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::future<void>> others;  // their destructors wait, also if f throws here
  for (std::int64_t t = 1; t < threads; ++t)
    others.push_back(std::async(std::launch::async,
                                [&f, begin = count * t / threads, end = count * (t + 1) / threads] { f(begin, end); }));
  f(std::int64_t(0), count / threads);
  for (auto& other : others) other.get();
}

}  // namespace kiln::reference
