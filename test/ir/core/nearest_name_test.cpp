#include "ir/nearest_name.hpp"

#include <gtest/gtest.h>

#include <array>

using namespace kiln;

TEST(nearest_name, finds_what_was_probably_meant) {
  constexpr std::array<std::string_view, 6> known{"tile_m", "tile_n", "graph", "threads", "n", "sequence"};
  EXPECT_EQ(nearest_name("tile_q", known), "tile_m") << "the first of equals";
  EXPECT_EQ(nearest_name("grahp", known), "graph") << "neighbours swapped";
  EXPECT_EQ(nearest_name("thread", known), "threads");
  EXPECT_EQ(nearest_name("seqence", known), "sequence");
  EXPECT_EQ(nearest_name("seqeunces", known), "sequence");
  EXPECT_EQ(nearest_name("N", known), "") << "nothing of the name is right";
  EXPECT_EQ(nearest_name("batch", known), "");
  EXPECT_EQ(nearest_name("", known), "");
  EXPECT_EQ(nearest_name("graph", {}), "");
  EXPECT_EQ(nearest_name(std::string(100000, 'a'), known), "");
}

TEST(nearest_name, the_hint_is_the_end_of_a_message) {
  constexpr std::array<std::string_view, 1> known{"graph"};
  EXPECT_EQ(did_you_mean("grahp", known), "; did you mean 'graph'?");
  EXPECT_EQ(did_you_mean("device", known), "");
}
