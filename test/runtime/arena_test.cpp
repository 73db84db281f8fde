#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>

#include "runtime/arena.hpp"

namespace kiln {
namespace {

void expect_valid(const std::vector<arena_request>& requests, const arena_layout& layout) {
  ASSERT_EQ(layout.offsets.size(), requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    ASSERT_EQ(layout.offsets[i] % arena_alignment, 0u);
    ASSERT_LE(layout.offsets[i] + requests[i].bytes, layout.bytes);
    for (std::size_t j = 0; j < i; ++j) {
      bool together = requests[i].first <= requests[j].last && requests[j].first <= requests[i].last;
      bool overlap = layout.offsets[i] < layout.offsets[j] + requests[j].bytes &&
                     layout.offsets[j] < layout.offsets[i] + requests[i].bytes;
      ASSERT_FALSE(together && overlap && requests[i].bytes && requests[j].bytes) << "requests " << i << " and " << j;
    }
  }
  ASSERT_GE(layout.bytes, layout.lower_bound);
  ASSERT_LE(layout.bytes, layout.sum);
}

TEST(arena, no_two_live_buffers_overlap) {
  std::mt19937 random(3);
  double worst = 1, sum_of_ratios = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<arena_request> requests(random() % 200);
    for (arena_request& r : requests) {
      r.bytes = random() % 8 == 0 ? 0 : 1 + random() % (1u << (random() % 20));
      r.first = random() % 100;
      r.last = r.first + (random() % 10 == 0 ? random() % 60 : random() % 5);
    }
    arena_layout layout = pack_arena(requests);
    expect_valid(requests, layout);
    double ratio =
        layout.lower_bound ? static_cast<double>(layout.bytes) / static_cast<double>(layout.lower_bound) : 1.0;
    worst = std::max(worst, ratio);
    sum_of_ratios += ratio;
  }
  std::printf("arena / most live bytes: mean %.4f, worst %.4f\n", sum_of_ratios / 300, worst);
  EXPECT_LT(sum_of_ratios / 300, 1.05);
  EXPECT_LT(worst, 1.4);
}

TEST(arena, a_chain_of_layers_needs_two_buffers) {
  std::vector<arena_request> chain;
  for (int i = 0; i < 50; ++i) chain.push_back({1000, i, i + 1});
  arena_layout layout = pack_arena(chain);
  expect_valid(chain, layout);
  EXPECT_EQ(layout.bytes, 2u * 1024u);
  EXPECT_EQ(layout.lower_bound, 2u * 1024u);
  EXPECT_EQ(layout.sum, 50u * 1024u);
}

TEST(arena, residual_network_reaches_the_bound) {
  std::vector<arena_request> net;  // a block of three layers with a skip over them
  for (int i = 0; i < 16; ++i) {
    net.push_back({802816, 3 * i, 3 * i + 3});
    net.push_back({200704, 3 * i + 1, 3 * i + 2});
    net.push_back({200704, 3 * i + 2, 3 * i + 3});
  }
  arena_layout layout = pack_arena(net);
  expect_valid(net, layout);
  EXPECT_EQ(layout.bytes, layout.lower_bound);
}

// The sizes of a model are mostly multiples of its open dimensions.
TEST(arena, sets_with_the_same_lifetimes_are_laid_out_in_ways_that_were_kept) {
  std::mt19937 random(5);
  double worst = 1;
  for (int round = 0; round < 30; ++round) {
    std::vector<arena_request> requests(1 + random() % 200);
    std::vector<std::size_t> rows, fixed;
    for (arena_request& r : requests) {
      rows.push_back(random() % 8 == 0 ? 0 : 1 + random() % (1u << (random() % 12)));
      fixed.push_back(rows.back() && random() % 6 == 0 ? random() % 100000 : 0);
      r.first = random() % 100;
      r.last = r.first + (random() % 10 == 0 ? random() % 60 : random() % 5);
    }
    arena_packer packer;
    for (int size = 0; size < 40; ++size) {
      const std::size_t batch = 1 + random() % 64;
      for (std::size_t i = 0; i < requests.size(); ++i)
        requests[i].bytes = i % 20 == 0 && batch < 9 ? 0 : rows[i] * batch + fixed[i];
      if (size % 10 == 9) requests[random() % requests.size()].last += 1;
      const arena_layout layout = packer.pack(requests), anew = pack_arena(requests);
      expect_valid(requests, layout);
      EXPECT_EQ(layout.lower_bound, anew.lower_bound);
      EXPECT_EQ(layout.sum, anew.sum);
      if (anew.bytes) worst = std::max(worst, static_cast<double>(layout.bytes) / static_cast<double>(anew.bytes));
    }
  }
  std::printf("arena / packed anew: worst %.4f\n", worst);
  EXPECT_LT(worst, 1.25);
}

TEST(arena, nothing_needs_nothing) {
  EXPECT_EQ(pack_arena({}).bytes, 0u);
  std::vector<arena_request> empty{{0, 0, 5}, {0, 2, 3}};
  EXPECT_EQ(pack_arena(empty).bytes, 0u);
}

}  // namespace
}  // namespace kiln
