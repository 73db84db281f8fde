// Which tables are indexed with numbers that grow with the inputs.
#include "aot/index_limits.hpp"

#include <gtest/gtest.h>

#include "ir/ops/all.hpp"

namespace kiln {
namespace {

class index_limits : public ::testing::Test {
 protected:
  value table(std::int64_t rows) {
    return m.add_constant(literal::from_doubles({element_type::f32, {rows, 2}}, std::vector<double>(rows * 2)));
  }
  value number(std::int64_t x) {
    return m.add_constant(literal::from_doubles({element_type::i64, {1}}, std::vector<double>{double(x)}));
  }
  value plus(value a, value b) {
    return m.add(elementwise{scalar_function::add}, {a, m.add(broadcast{a.type().dims}, {b})});
  }
  std::map<std::string, std::string> limits(value indices, std::int64_t rows) {
    m.set_outputs({m.add(gather{}, {table(rows), indices})}, {"y"});
    record_index_limits(p);
    return p.metadata;
  }
  program p;
  module& m = p.main();
  const dim sequence = dim::symbol("sequence"), past = dim::symbol("past");
};

using limits_of = std::map<std::string, std::string>;

TEST_F(index_limits, a_range_behind_the_past) {
  const value ones = m.add(broadcast{{past}}, {number(1)});
  const value length = m.add(reduce{reduction_kind::sum, {0}, true}, {ones});
  const value place = m.add(gather{}, {m.add(concat{0}, {number(3), length}), number(1)});
  const value positions = plus(m.add(iota{element_type::i64, {sequence}, 0}, {}), place);
  EXPECT_EQ(limits(plus(positions, number(2)), 34),
            (limits_of{{"index_limit:" + (past + sequence + dim(1)).str(), "34"}}));
}

TEST_F(index_limits, the_sum_of_a_mask) {
  const value mask = m.add_parameter("attention_mask", {element_type::i64, {2, past + sequence}});
  const value sum = m.add(cumulative_sum{1}, {mask});
  const value positions = m.add(elementwise{scalar_function::mul}, {sum, mask});
  EXPECT_EQ(limits(plus(positions, number(-1)), 9),
            (limits_of{{"index_limit:" + (past + sequence - dim(1)).str(), "9"}}));
}

TEST_F(index_limits, numbers_from_the_caller_or_without_growth_have_none) {
  EXPECT_EQ(limits(m.add_parameter("ids", {element_type::i64, {sequence}}), 5), limits_of{});
  EXPECT_EQ(limits(m.add(iota{element_type::i64, {dim(4)}, 0}, {}), 5), limits_of{});
}

}  // namespace
}  // namespace kiln
