// Work on pieces of large data that two threads share, such as hashing. Reading memory is the limit, so more threads
// would not help.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <thread>

namespace kiln {

// Calls work(i) once for each i < count, in any order. A second thread helps if the pieces have many bytes together, if
// there is a processor for it and if the system has a thread left. `work` must not throw.
template <class Work>
void on_two_threads(std::size_t count, std::uint64_t bytes, Work&& work) {
  // Below this, starting a thread costs more than it saves.
  constexpr std::uint64_t threaded_bytes = std::uint64_t{8} << 20;
  std::atomic<std::size_t> next = 0;
  const auto take = [&] {
    for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) work(i);
  };
  std::thread second;
  if (bytes >= threaded_bytes && std::thread::hardware_concurrency() > 1) {
    try {
      second = std::thread(take);
    } catch (const std::system_error&) {
      // No more threads are available: the current thread does all the work.
    }
  }
  take();
  if (second.joinable()) second.join();
}

}  // namespace kiln
