#include "jit/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/thread_pool.hpp"

namespace kiln {

void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body) {
  std::atomic<std::size_t> next = 0;
  std::exception_ptr first;
  std::mutex mutex;
  auto work = [&] {
    for (std::size_t i; (i = next++) < count;) {
      try {
        body(i);
      } catch (...) {
        next = count;
        std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
    }
  };
  std::size_t wanted =
      std::min<std::size_t>(count, threads > 0 ? static_cast<std::size_t>(threads) : usable_processors());
  std::vector<std::jthread> others;
  for (std::size_t t = 1; t < wanted; ++t) {
    try {
      others.emplace_back(work);
    } catch (const std::system_error&) {
      break;  // the process cannot start more threads; continue with those that it has
    }
  }
  work();
  others.clear();  // joins
  if (first) std::rethrow_exception(first);
}

}  // namespace kiln
