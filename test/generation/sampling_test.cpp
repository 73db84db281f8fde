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

#include "generation/likeliest.hpp"
#include "generation/widen_logits.hpp"
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

// Beside a sort of all ids: equal logits, zeros of both signs, infinities.
TEST(sampling, likeliest_ids_are_those_of_a_sort) {
  for (std::size_t size : {7u, 5000u, 50000u}) {
    std::vector<float> many(size);
    for (std::size_t i = 0; i < size; ++i)
      many[i] = std::round(static_cast<float>(std::sin(static_cast<double>(i * i))) * 300) / 64;
    many[2] = -0.0f, many[3] = 0, many[5] = -std::numeric_limits<float>::infinity();
    std::vector<std::size_t> order(size);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return many[a] > many[b]; });
    for (std::size_t count : {std::size_t{1}, std::size_t{40}, std::size_t{1536}, std::size_t{1537}, size, size + 1}) {
      const auto kept = static_cast<std::ptrdiff_t>(std::min(count, size));
      EXPECT_EQ(likeliest_ids(many, count), std::vector<std::size_t>(order.begin(), order.begin() + kept)) << count;
    }
    EXPECT_EQ(largest(many), many[order[0]]);
  }
  EXPECT_EQ(largest(std::vector<float>{NAN, -2, NAN, -1}), -1);
}

// With probabilities so close to a limit that the sum of all weights must be exact.
TEST(sampling, top_p_of_equal_logits) {
  const std::vector<float> equal(40000, 0.5f);
  for (double p : {0.25, 0.5}) {
    sampler choose({.method = sampling_method::top_p, .top_p = p});
    std::int64_t largest_id = 0;
    for (int i = 0; i < 200; ++i) largest_id = std::max(largest_id, choose.choose(equal, {}));
    EXPECT_LT(largest_id, 40000 * p);
    EXPECT_GT(largest_id, 40000 * p * 0.9);
  }
}

TEST(sampling, logits_are_widened_exactly) {
  std::vector<std::uint16_t> bits(65536);
  std::iota(bits.begin(), bits.end(), std::uint16_t{0});
  for (element_type type : {element_type::f16, element_type::bf16}) {
    std::vector<float> wide(bits.size());
    widen_logits(type, std::as_bytes(std::span(bits)), wide);
    for (std::uint16_t i : bits) {
      const float expected = type == element_type::f16 ? f16_to_f32(i) : bf16_to_f32(i);
      ASSERT_TRUE(wide[i] == expected || (std::isnan(wide[i]) && std::isnan(expected))) << i;
    }
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
