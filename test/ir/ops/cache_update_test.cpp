#include "ir/ops/cache_update.hpp"

#include <gtest/gtest.h>

#include "ir/error.hpp"
#include "ir/literal.hpp"

namespace kiln::testing {
namespace {

using enum element_type;

literal numbers(std::vector<dim> dims, double first) {
  const shape type{f32, std::move(dims)};
  std::vector<double> values;
  for (std::int64_t i = 0; i < type.element_count(); ++i) values.push_back(first + static_cast<double>(i));
  return literal::from_doubles(type, values);
}

std::vector<double> updated(const literal& cache, const literal& rows, std::vector<std::int64_t> at,
                            std::int64_t axis) {
  return cache_update{axis}.evaluate(std::vector{cache, rows, literal::from_int64(at)})[0].to_doubles();
}

TEST(cache_update, writes_rows_at_the_position_of_each_batch) {
  EXPECT_EQ(updated(numbers({2, 3, 2}, 0), numbers({2, 1, 2}, 100), {2, 0}, 1),
            (std::vector<double>{0, 1, 2, 3, 100, 101, 102, 103, 8, 9, 10, 11}));
  EXPECT_EQ(updated(numbers({1, 2, 3}, 0), numbers({1, 2, 1}, 100), {1}, 2),
            (std::vector<double>{0, 100, 2, 3, 101, 5}));
}

TEST(cache_update, keeps_positions_inside) {
  EXPECT_EQ(updated(numbers({1, 3}, 0), numbers({1, 2}, 100), {7}, 1), (std::vector<double>{0, 100, 101}));
  EXPECT_EQ(updated(numbers({1, 3}, 0), numbers({1, 2}, 100), {-1}, 1), (std::vector<double>{100, 101, 2}));
}

TEST(cache_update, writes_the_rows_of_one_layer) {
  const auto updated = [](std::int64_t layer) {
    return cache_update{1}
        .evaluate(std::vector{numbers({4, 2}, 0), numbers({2, 1}, 100), literal::from_int64({1}),
                              literal::from_int64({layer})})[0]
        .to_doubles();
  };
  EXPECT_EQ(updated(0), (std::vector<double>{0, 100, 2, 101, 4, 5, 6, 7}));
  EXPECT_EQ(updated(1), (std::vector<double>{0, 1, 2, 3, 4, 100, 6, 101}));
  EXPECT_EQ(updated(9), updated(1));
  EXPECT_EQ(updated(-9), updated(0));
}

TEST(cache_update, refuses_what_does_not_fit) {
  const dim batch = dim::symbol("batch"), room = dim::symbol("room"), count = dim::symbol("count");
  const shape cache{f32, {batch, 4, room, 8}}, rows{f32, {batch, 4, count, 8}}, one{i64, {1}};
  const auto infer = [](std::vector<shape> inputs, std::int64_t axis = 2) { return cache_update{axis}.infer(inputs); };
  EXPECT_EQ(infer({cache, rows, one})[0], cache);
  EXPECT_EQ(infer({cache, rows, {i32, {batch}}})[0], cache);
  EXPECT_THROW(infer({cache, rows, one}, 0), error);
  EXPECT_THROW(infer({cache, rows, one}, 4), error);
  EXPECT_THROW(infer({cache, rows, one}, 3), error);
  EXPECT_THROW(infer({cache, {f16, rows.dims}, one}), error);
  EXPECT_THROW(infer({cache, rows, {f32, {1}}}), error);
  EXPECT_THROW(infer({cache, rows, {i64, {2}}}), error);
  EXPECT_THROW(infer({cache, rows}), error);
  EXPECT_THROW(infer({{f32, {1, 3}}, {f32, {1, 4}}, one}, 1), error);
  const shape layers{f32, {6, 3}};
  EXPECT_EQ(infer({layers, {f32, {2, 1}}, one, one}, 1)[0], layers);
  EXPECT_EQ(infer({layers, {f32, {2, 1}}, {i64, {2}}, one}, 1)[0], layers);
  EXPECT_THROW(infer({layers, {f32, {2, 1}}, one}, 1), error);
  EXPECT_THROW(infer({layers, {f32, {4, 1}}, one, one}, 1), error);
  EXPECT_THROW(infer({layers, {f32, {2, 1}}, one, {i64, {2}}}, 1), error);
  EXPECT_THROW(infer({layers, {f32, {2, 1}}, one, {f32, {1}}}, 1), error);
}

}  // namespace
}  // namespace kiln::testing
