// Sampling: which ids can be chosen, how often, and that a seed repeats them.
#include "generation/sampling.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "ir/error.hpp"

namespace kiln {
namespace {

const std::vector<float> logits{1, 3, 2, 3, -1};

std::map<std::int64_t, int> counts(const sampling_options& options, int times) {
  sampler choose(options);
  std::map<std::int64_t, int> result;
  for (int i = 0; i < times; ++i) ++result[choose.choose(logits, {})];
  return result;
}

TEST(sampling, greedy_takes_the_first_of_the_likeliest) {
  EXPECT_EQ(sampler({}).choose(logits, {}), 1);
  EXPECT_EQ(sampler({}).choose(std::vector<float>{NAN, -1, NAN}, {}), 1);
}

TEST(sampling, penalty_makes_earlier_ids_less_likely) {
  const std::vector<std::int64_t> before{1, 3};
  EXPECT_EQ(sampler({.repetition_penalty = 2}).choose(logits, before), 2);
}

TEST(sampling, top_k_chooses_among_k_in_proportion) {
  const auto found = counts({.method = sampling_method::top_k, .top_k = 3}, 20000);
  ASSERT_EQ(found.size(), 3u);
  // exp(3), exp(3) and exp(2) of their sum.
  EXPECT_NEAR(found.at(1) / 20000.0, 0.4223, 0.02);
  EXPECT_NEAR(found.at(3) / 20000.0, 0.4223, 0.02);
  EXPECT_NEAR(found.at(2) / 20000.0, 0.1554, 0.02);
}

TEST(sampling, top_p_keeps_the_fewest_ids_of_that_probability) {
  EXPECT_EQ(counts({.method = sampling_method::top_p, .top_p = 0.1}, 100).size(), 1u);
  EXPECT_EQ(counts({.method = sampling_method::top_p, .top_p = 0.7}, 1000).size(), 2u);
  EXPECT_EQ(counts({.method = sampling_method::top_p, .top_p = 1.0}, 20000).size(), 5u);
}

// Beside a sort of the whole vocabulary: the ids that remain are those of it, in a vocabulary of which few are sorted.
TEST(sampling, a_large_vocabulary) {
  std::vector<float> large(5000);
  for (std::size_t i = 0; i < large.size(); ++i)
    large[i] = static_cast<float>(std::sin(static_cast<double>(i * i))) * 3;
  std::vector<std::size_t> order(large.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return large[a] > large[b]; });
  double all = 0;
  for (float x : large) all += std::exp(static_cast<double>(x));
  for (double p : {0.01, 0.3, 0.9}) {
    std::size_t kept = 0;
    for (double sum = 0; sum < p * all; ++kept) sum += std::exp(static_cast<double>(large[order[kept]]));
    const std::set<std::size_t> allowed(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept));
    sampler choose({.method = sampling_method::top_p, .top_p = p});
    std::set<std::size_t> drawn;
    for (int i = 0; i < 400; ++i) drawn.insert(static_cast<std::size_t>(choose.choose(large, {})));
    EXPECT_TRUE(std::ranges::includes(allowed, drawn)) << p;
    EXPECT_GT(drawn.size(), std::min<std::size_t>(kept, 400) / 2) << p;
  }
}

TEST(sampling, options_outside_of_their_range) {
  EXPECT_NO_THROW(check({}));
  for (const sampling_options& wrong : {sampling_options{.temperature = 0},
                                        {.temperature = NAN},
                                        {.top_k = 0},
                                        {.top_p = 0},
                                        {.top_p = 1.1},
                                        {.repetition_penalty = 0}})
    EXPECT_THROW(check(wrong), error);
}

TEST(sampling, temperature_sharpens) {
  const auto found = counts({.method = sampling_method::top_k, .temperature = 0.05, .top_k = 5}, 1000);
  EXPECT_EQ(found.size(), 2u);
}

TEST(sampling, seed_repeats_the_ids) {
  sampler a({.method = sampling_method::top_k, .seed = 7}), b({.method = sampling_method::top_k, .seed = 7});
  for (int i = 0; i < 50; ++i) EXPECT_EQ(a.choose(logits, {}), b.choose(logits, {}));
}

}  // namespace
}  // namespace kiln
