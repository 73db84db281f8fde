// The background thread of a session: order, bounds, errors and the end.
#include "session/background_work.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace kiln::testing {
namespace {

using namespace std::chrono_literals;

void await(const background_work& work) {
  for (auto end = std::chrono::steady_clock::now() + 20s; !work.idle() && std::chrono::steady_clock::now() < end;)
    std::this_thread::sleep_for(1ms);
  ASSERT_TRUE(work.idle());
}

TEST(background_work, tasks_run_in_order_and_errors_end_only_their_task) {
  background_work work;
  EXPECT_TRUE(work.idle());
  std::vector<int> order;
  for (int i = 0; i < 5; ++i)
    work.add([&order, i](const std::stop_token&) {
      order.push_back(i);
      if (i == 2) throw std::runtime_error("a task failed");
    });
  await(work);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(background_work, a_full_queue_takes_no_more) {
  std::atomic<bool> go_on = false;
  std::atomic<int> done = 0;
  background_work work;
  int taken = 0;
  for (int i = 0; i < 1000; ++i)
    taken += work.add([&](const std::stop_token&) {
      while (!go_on) std::this_thread::sleep_for(1ms);
      ++done;
    });
  EXPECT_LT(taken, 1000);
  go_on = true;
  await(work);
  EXPECT_EQ(done, taken);
}

TEST(background_work, its_end_stops_the_task_under_way_and_drops_the_others) {
  std::atomic<int> begun = 0;
  {
    background_work work;
    for (int i = 0; i < 3; ++i)
      work.add([&](const std::stop_token& stop) {
        ++begun;
        while (!stop.stop_requested()) std::this_thread::sleep_for(1ms);
      });
    while (begun == 0) std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(begun, 1);
}

}  // namespace
}  // namespace kiln::testing
