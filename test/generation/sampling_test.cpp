// Sampling: which ids can be chosen, how often, and that a seed repeats them.
#include "generation/sampling.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

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
