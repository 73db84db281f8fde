#include "ir/dim_facts.hpp"

#include <gtest/gtest.h>

using kiln::dim;
using kiln::dim_facts;

TEST(dim_facts, comparisons_follow_from_the_least_values_of_symbols) {
  dim p = dim::symbol("p"), s = dim::symbol("s");
  dim_facts facts;
  EXPECT_EQ(facts.order(p + s, -1), 1);
  EXPECT_EQ(facts.order(p * s, 0), 1);
  EXPECT_EQ(facts.order(s + 1, 1), 1);
  EXPECT_EQ(facts.order(p * s - s, -1), 1);
  EXPECT_EQ(facts.order(p, s), std::nullopt);
  EXPECT_EQ(facts.order(s, 1), std::nullopt);
}

TEST(dim_facts, a_symbol_that_may_be_zero_is_not_taken_for_positive) {
  dim p = dim::symbol("p"), s = dim::symbol("s");
  dim_facts facts;
  facts.set_range("p", 0, 20);
  EXPECT_EQ(facts.order(p, 0), std::nullopt);
  EXPECT_EQ(facts.order(p * s, 0), std::nullopt);
  EXPECT_EQ(facts.order(p + s, 0), 1);
  EXPECT_EQ(facts.order(p, 21), -1);
  EXPECT_TRUE(facts.at_least(p, 0));
}

TEST(dim_facts, minima_and_quotients_are_tied_to_their_operands) {
  dim s = dim::symbol("s"), p = dim::symbol("p");
  dim_facts facts;
  EXPECT_TRUE(facts.at_least(s, dim::min(s, 512)));
  // A window that moves by s shows at most s new rows.
  EXPECT_TRUE(facts.at_least(s, dim::min(p + s, 128) - dim::min(p, 128)));
  EXPECT_TRUE(facts.at_least(dim::max(p + s, 128) - dim::max(p, 128), 0));
  EXPECT_TRUE(facts.at_least(s, s / dim(3) * 3));
  EXPECT_EQ(facts.upper(s - s / dim(3) * 3), 2);
  EXPECT_EQ(facts.upper((s + 7) / dim(8) * 8 - s), 7);
  EXPECT_EQ(facts.min(s, s + 4), s);
  EXPECT_EQ(facts.max(s, 1), s);
}

TEST(dim_facts, numbers_beyond_all_bounds_are_unknown) {
  dim s = dim::symbol("s");
  dim_facts facts;
  facts.set_range("s", 0, INT64_MAX - 1);
  EXPECT_EQ(facts.upper(s * s), std::nullopt);
  EXPECT_EQ(facts.lower(dim(0) - s * s * s), std::nullopt);
}

TEST(dim_facts, symbols_are_bounded_by_expressions) {
  dim steps = dim::symbol("steps"), trip = dim::symbol("trip"), inner = dim::symbol("inner"), s = dim::symbol("s");
  dim_facts facts;
  facts.set_range("trip", 0, steps - 1);
  facts.set_range("inner", 0, trip);
  EXPECT_TRUE(facts.at_least(steps, trip + 1));
  EXPECT_TRUE(facts.at_least(steps * 3 - 3, trip * 3));
  EXPECT_TRUE(facts.at_least(steps - 1, inner));
  EXPECT_FALSE(facts.at_least(steps, trip + 2));
  EXPECT_FALSE(facts.at_least(s, trip));
  EXPECT_EQ(facts.lower(trip), 0);
  EXPECT_EQ(facts.min(trip, steps), trip);
  facts.set_range("steps", 1, 40);
  facts.set_range("next", 0, steps - 1);
  EXPECT_EQ(facts.upper(dim::symbol("next")), 39);
}
