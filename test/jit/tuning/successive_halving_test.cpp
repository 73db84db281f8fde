// Statistics of timings, and successive halving with simulated candidates.
#include "jit/tuning/successive_halving.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

using namespace kiln;

namespace {

// Candidates with known times and noise that is occasionally large. Only they advance the clock.
struct fake_device {
  std::vector<double> ms;
  std::mt19937 engine{7};
  double clock_ms = 0;
  std::vector<int> turns = std::vector<int>(ms.size());

  double sample(std::size_t i) {
    std::normal_distribution<double> noise(0, 0.02);
    double outlier = engine() % 20 == 0 ? 3 : 1;
    double time = ms[i] * (1 + std::abs(noise(engine))) * outlier;
    clock_ms += time;
    ++turns[i];
    return time;
  }
};

halving_result run(fake_device& device, halving_options options = {}) {
  return successive_halving(device.ms.size(), [&](std::size_t i) { return device.sample(i); }, options);
}

}  // namespace

TEST(statistics, a_median_does_not_follow_outliers) {
  timing t = summarize({1, 1.01, 0.99, 1.02, 50, 0.98, 1});
  EXPECT_DOUBLE_EQ(t.median, 1);
  EXPECT_EQ(t.samples, 7);
  EXPECT_LT(t.high, 1.05);
  EXPECT_GT(t.low, 0.95);
  EXPECT_DOUBLE_EQ(summarize({1, 2, 3, 4}).median, 2.5);
}

TEST(statistics, few_samples_decide_nothing) {
  EXPECT_FALSE(clearly_faster(summarize({1, 1, 1, 1}), summarize({5, 5, 5, 5}), 0));
  EXPECT_TRUE(clearly_faster(summarize({1, 1, 1, 1, 1}), summarize({5, 5, 5, 5, 5}), 0));
  EXPECT_FALSE(clearly_faster(summarize({4.99, 4.99, 4.99, 4.99, 4.99}), summarize({5, 5, 5, 5, 5}),
                              0.01));  // less than the margin
  EXPECT_EQ(summarize({}).samples, 0);
}

TEST(statistics, the_interval_holds_the_true_median_as_often_as_it_says) {
  std::mt19937 engine(3);
  std::normal_distribution<double> normal(10, 1);
  int held = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    std::vector<double> samples(25);
    for (double& s : samples) s = normal(engine);
    timing t = summarize(samples);
    held += t.low <= 10 && 10 <= t.high;
  }
  EXPECT_GE(held, 880);  // 95 % for many samples, less for 25
}

TEST(statistics, percentiles_of_sorted_samples) {
  std::vector<double> values(100);
  std::iota(values.begin(), values.end(), 1.0);
  EXPECT_DOUBLE_EQ(percentile(values, 0), 1);
  EXPECT_DOUBLE_EQ(percentile(values, 1), 100);
  EXPECT_DOUBLE_EQ(percentile(values, 0.99), 99);
  EXPECT_DOUBLE_EQ(percentile({}, 0.5), 0);
}

TEST(successive_halving, the_fastest_wins_in_spite_of_noise) {
  int right = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    fake_device device;
    for (int i = 0; i < 16; ++i) device.ms.push_back(1 + 0.1 * ((i * 7 + static_cast<int>(seed)) % 16));
    device.turns.resize(16);
    device.engine.seed(seed);
    halving_result result = run(device);
    right += device.ms[result.order[0]] == 1;
  }
  EXPECT_GE(right, 38);
}

TEST(successive_halving, slow_candidates_leave_early) {
  fake_device device{{1, 1.05, 1.5, 1.6, 1.7, 1.8, 1.9, 100}};
  halving_result result = run(device);
  EXPECT_EQ(result.order.size(), 8u);
  // A hopeless candidate is dropped after one turn.
  EXPECT_EQ(device.turns[7], 1);
  // Dropped after the first rounds.
  EXPECT_LE(device.turns[6], 9);
  EXPECT_GT(device.turns[0], device.turns[6]);
  EXPECT_FALSE(result.candidates[6].finished);
  EXPECT_TRUE(result.candidates[result.order[0]].finished);
}

TEST(successive_halving, it_ends_when_it_is_decided) {
  fake_device device{{1, 2}};
  halving_result result = run(device, {.most_samples = 1000});
  EXPECT_EQ(result.order[0], 0u);
  EXPECT_LE(device.turns[0], 24);
}

TEST(successive_halving, equal_candidates_cost_no_more_than_the_limit) {
  fake_device device{{1, 1, 1, 1}};
  run(device, {.most_samples = 20});
  for (int t : device.turns) EXPECT_LE(t, 20);
}

TEST(successive_halving, the_first_may_be_kept) {
  fake_device device{{3, 1, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06}};
  halving_result result = run(device, {.keep_first = true});
  EXPECT_EQ(device.turns[0], *std::max_element(device.turns.begin(), device.turns.end()));
  EXPECT_TRUE(result.candidates[0].finished);
}

TEST(successive_halving, turns_are_interleaved) {
  std::vector<std::size_t> order;
  successive_halving(3,
                     [&](std::size_t i) {
                       order.push_back(i);
                       return 1.0 + static_cast<double>(order.size() % 3);
                     },
                     {.most_samples = 3});
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 0, 1, 2, 0, 1, 2}));
}

TEST(successive_halving, the_budget_stops_it_between_turns) {
  fake_device device{{1, 1, 1, 1, 1, 1, 1, 1}};
  halving_result result = run(device, {.stop = [&] { return device.clock_ms > 5; }});
  EXPECT_TRUE(result.stopped);
  EXPECT_LE(device.clock_ms, 5 + 3.3);  // one turn longer, at most an outlier
  EXPECT_FALSE(result.order.empty());
}

TEST(successive_halving, who_fails_leaves_and_the_others_go_on) {
  fake_device device{{1, 2, 3}};
  auto sample = [&](std::size_t i) {
    if (i == 0 && device.turns[0] == 2) throw error(error_kind::internal, "the launch failed");
    return device.sample(i);
  };
  halving_result result = successive_halving(3, sample, {});
  ASSERT_TRUE(result.candidates[0].failure);
  EXPECT_STREQ(result.candidates[0].failure->what(), "the launch failed");
  EXPECT_EQ(result.order[0], 1u);
  EXPECT_EQ(std::ranges::count(result.order, 0u), 0);
}

TEST(successive_halving, nobody_and_one_alone) {
  EXPECT_TRUE(successive_halving(0, [](std::size_t) { return 1.0; }, {}).order.empty());
  halving_result alone = successive_halving(1, [](std::size_t) { return 1.0; }, {});
  EXPECT_EQ(alone.order, std::vector<std::size_t>{0});
  EXPECT_EQ(alone.candidates[0].time.samples, 3);
}
