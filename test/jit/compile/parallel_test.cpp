// The bounded parallel loop: visits every index once, never uses more threads than allowed, and propagates exceptions.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "jit/parallel.hpp"

namespace kiln::test {
namespace {

TEST(parallel_for, calls_every_index_once_on_no_more_threads_than_asked_for) {
  for (int threads : {0, 1, 2, 3, 64}) {
    std::vector<std::atomic<int>> calls(100);
    std::mutex mutex;
    std::set<std::thread::id> seen;
    parallel_for(calls.size(), threads, [&](std::size_t i) {
      ++calls[i];
      std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
    EXPECT_TRUE(std::all_of(calls.begin(), calls.end(), [](const auto& c) { return c == 1; })) << threads;
    EXPECT_LE(seen.size(), threads > 0 ? static_cast<std::size_t>(threads) : calls.size());
  }
  parallel_for(0, 4, [](std::size_t) { FAIL(); });
}

TEST(parallel_for, starts_as_many_threads_as_this_thread_may_use_processors) {
  std::set<std::thread::id> seen;
  std::jthread([&] {
    cpu_set_t before, one;
    ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu)
      if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    std::mutex mutex;
    parallel_for(100, 0, [&](std::size_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
  }).join();
  EXPECT_EQ(seen.size(), 1u);
}

TEST(parallel_for, one_slow_index_does_not_hold_up_the_others) {
  std::atomic<int> done = 0;
  parallel_for(20, 2, [&](std::size_t i) {
    for (int wait = 0; i == 0 && done < 19 && wait < 5000; ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(i != 0 || done == 19) << done;
    ++done;
  });
}

TEST(parallel_for, passes_on_the_first_exception_and_begins_nothing_after_it) {
  std::atomic<int> calls = 0;
  EXPECT_THROW(parallel_for(1000, 1,
                            [&](std::size_t i) {
                              ++calls;
                              if (i == 3) throw std::runtime_error("three");
                            }),
               std::runtime_error);
  EXPECT_EQ(calls, 4);
  calls = 0;
  EXPECT_THROW(parallel_for(100000, 4,
                            [&](std::size_t) {
                              ++calls;
                              throw std::runtime_error("all");
                            }),
               std::runtime_error);
  EXPECT_LT(calls, 100);
}

}  // namespace
}  // namespace kiln::test
