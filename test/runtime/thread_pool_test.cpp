#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "ir/error.hpp"
#include "runtime/thread_pool.hpp"

namespace kiln {
namespace {

// Increments without atomics: an item that is executed twice, or by two threads, gives a wrong count, and a race under
// TSan.
void run_and_check(thread_pool& team, std::int64_t grid) {
  std::vector<int> hits(static_cast<std::size_t>(grid), 0);
  team.run(grid, [&](std::int64_t begin, std::int64_t end) {
    ASSERT_LT(begin, end);
    for (std::int64_t i = begin; i < end; ++i) ++hits[static_cast<std::size_t>(i)];
  });
  for (std::int64_t i = 0; i < grid; ++i)
    ASSERT_EQ(hits[static_cast<std::size_t>(i)], 1)
        << "item " << i << " of " << grid << ", " << team.size() << " threads";
}

TEST(thread_pool, every_item_runs_once) {
  for (unsigned threads : {1u, 2u, 3u, 8u}) {
    thread_pool team(threads);
    ASSERT_EQ(team.size(), threads);
    for (std::int64_t grid : {0, 1, 2, 3, 5, 7, 8, 31, 100, 1023, 4097}) run_and_check(team, grid);
  }
}

TEST(thread_pool, many_runs_hand_over_their_data) {
  thread_pool team(4);
  std::vector<std::int64_t> values(257, 0);
  for (int round = 0; round < 5000; ++round) {  // each run reads what other members wrote in the last one
    std::vector<std::int64_t> next(values.size());
    team.run(static_cast<std::int64_t>(values.size()), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        next[static_cast<std::size_t>(i)] = values[(static_cast<std::size_t>(i) + 100) % values.size()] + 1;
    });
    values.swap(next);
  }
  for (std::int64_t v : values) ASSERT_EQ(v, 5000);
}

TEST(thread_pool, wakes_members_that_went_to_sleep) {
  thread_pool team(3);
  for (int round = 0; round < 20; ++round) {
    // Much longer than threads spin.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    run_and_check(team, 50);
  }
}

TEST(thread_pool, uneven_items_are_shared_out) {
  thread_pool team(4);
  // All the work is in the first slice: without balancing, one thread would do it alone.
  std::atomic<int> members{0};
  std::vector<std::atomic<int>> seen(1);
  thread_local bool counted = false;
  team.run(64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (i >= 16) continue;
      if (!counted) counted = true, ++members;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  EXPECT_GE(members.load(), 2);
}

TEST(thread_pool, several_callers_and_nested_runs) {
  thread_pool team(3);
  std::atomic<std::int64_t> total{0};
  auto caller = [&] {
    for (int round = 0; round < 300; ++round)
      team.run(20, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) team.run(5, [&](std::int64_t b, std::int64_t e) { total += e - b; });
      });
  };
  std::thread a(caller), b(caller);
  caller();
  a.join();
  b.join();
  EXPECT_EQ(total.load(), 3 * 300 * 20 * 5);
}

TEST(thread_pool, makes_and_ends_many_teams) {
  for (int i = 0; i < 200; ++i) {
    thread_pool team(1 + static_cast<unsigned>(i) % 5);
    if (i % 2) run_and_check(team, 17);
  }
}

TEST(thread_pool, covers_every_item_while_it_is_kept_awake_and_pinned) {
  thread_pool team(std::min(2u, usable_processors()), true);
  team.stay_awake(1);
  for (int round = 0; round < 300; ++round) {
    run_and_check(team, 97);
    // Longer than threads stay awake.
    if (round % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(4));
  }
  team.stay_awake(-1);
  run_and_check(team, 97);
}

TEST(thread_pool, no_more_pinned_threads_than_processors) { EXPECT_THROW(thread_pool(CPU_SETSIZE + 1, true), error); }

}  // namespace
}  // namespace kiln
