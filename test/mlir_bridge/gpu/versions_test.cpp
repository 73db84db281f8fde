// Which versions of a product serve which numbers of rows (mlir_bridge/gpu/contraction/versions.hpp).
#include "mlir_bridge/gpu/contraction/versions.hpp"

#include <gtest/gtest.h>

#include "mlir_bridge/gpu/contraction/tile_shape.hpp"

namespace kiln::gpu {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
using ranges = std::vector<version_range>;

// All versions must be worth the same.
ranges choose(const std::vector<std::vector<double>>& cycles, std::size_t most, double worth) {
  return choose_versions(cycles, most, std::vector<double>(cycles.size(), worth));
}

TEST(versions, one_suffices_if_others_gain_little) {
  const std::vector<std::vector<double>> cycles{{10, 11, 12, 13}, {11, 11, 11, 12}};
  EXPECT_EQ(choose(cycles, 4, 0.5), (ranges{{1, 3}}));
}

TEST(versions, each_serves_a_range_of_sizes) {
  const std::vector<std::vector<double>> cycles{{10, 40, 90, 160}, {30, 30, 60, 100}, {80, 80, 80, 80}};
  EXPECT_EQ(choose(cycles, 4, 0.1), (ranges{{0, 0}, {1, 2}, {2, 3}}));
  EXPECT_EQ(choose(cycles, 2, 0.1), (ranges{{0, 0}, {1, 3}}));
}

TEST(versions, another_one_is_worth_it_where_the_first_takes_almost_twice_as_long) {
  EXPECT_EQ(choose({{10, 10, 10, 16}, {30, 30, 30, 10}}, 4, 0.8), (ranges{{0, 3}}));
  EXPECT_EQ(choose({{10, 10, 10, 18}, {30, 30, 30, 10}}, 4, 0.8), (ranges{{0, 2}, {1, 3}}));
}

TEST(versions, one_of_much_code_must_gain_more) {
  const std::vector<std::vector<double>> cycles{{10, 10, 20, 20}, {20, 20, 12, 12}, {20, 20, 10, 10}};
  EXPECT_EQ(choose(cycles, 4, 0.2), (ranges{{0, 1}, {2, 3}}));
  EXPECT_EQ(choose_versions(cycles, 4, std::vector<double>{0.2, 0.2, 0.8}), (ranges{{0, 1}, {1, 3}}));
}

TEST(versions, none_is_used_where_it_cannot_be) {
  const std::vector<std::vector<double>> cycles{{1, 1, never, never}, {never, 50, 50, 50}};
  EXPECT_EQ(choose(cycles, 4, 100), (ranges{{0, 1}, {1, 3}}));
}

TEST(versions, exactly_one_is_used_for_each_number_of_rows) {
  const dim rows = dim::symbol("n") * 7;
  for (std::int64_t n : {1, 2, 3, 9, 10, 1000}) {
    const auto at = [&](std::int64_t above, std::int64_t most) {
      return rows_between(rows, above, most).substitute({{"n", n}}).value();
    };
    constexpr std::int64_t all = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ(at(0, 14), n <= 2);
    EXPECT_EQ(at(14, 64), n > 2 && n <= 9);
    EXPECT_EQ(at(64, all), n > 9);
    EXPECT_EQ(at(0, all), 1);
  }
}

TEST(versions, workgroups_share_the_depth_of_tiles_whose_last_round_would_be_mostly_idle) {
  tile_shape tile;
  tile.slots = 132, tile.splits = 12;
  const dim tiles = dim::symbol("n") + 1;
  const auto of = [&](std::int64_t count) { return shared_among(tile, tiles).substitute({{"n", count - 1}}).value(); };
  for (auto [count, parts] : {std::pair{1, 12},
                              {44, 3},
                              {66, 2},
                              {67, 3},
                              {88, 3},
                              {89, 1},
                              {132, 1},
                              {133, 3},
                              {176, 3},
                              {177, 2},
                              {198, 2},
                              {199, 1},
                              {1000, 1}})
    EXPECT_EQ(of(count), parts) << count;
  for (std::int64_t count = 1; count < 500; ++count)
    if (of(count) > 1) {
      EXPECT_LE(count, most_divided_tiles(tile));
    }
  tile.splits = 4;  // of too few steps
  EXPECT_EQ(of(133), 1);
  EXPECT_EQ(most_divided_tiles(tile), 132);
}

}  // namespace
}  // namespace kiln::gpu
