// Which versions of a product serve which numbers of rows (mlir_bridge/gpu/contraction/versions.hpp).
#include "mlir_bridge/gpu/contraction/versions.hpp"

#include <gtest/gtest.h>

namespace kiln::gpu {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
using ranges = std::vector<version_range>;

TEST(versions, one_suffices_if_others_gain_little) {
  const std::vector<std::vector<double>> cycles{{10, 11, 12, 13}, {11, 11, 11, 12}};
  EXPECT_EQ(choose_versions(cycles, 4, 0.5), (ranges{{1, 3}}));
}

TEST(versions, each_serves_a_range_of_sizes) {
  const std::vector<std::vector<double>> cycles{{10, 40, 90, 160}, {30, 30, 60, 100}, {80, 80, 80, 80}};
  EXPECT_EQ(choose_versions(cycles, 4, 0.1), (ranges{{0, 0}, {1, 2}, {2, 3}}));
  EXPECT_EQ(choose_versions(cycles, 2, 0.1), (ranges{{0, 0}, {1, 3}}));
}

TEST(versions, none_is_used_where_it_cannot_be) {
  const std::vector<std::vector<double>> cycles{{1, 1, never, never}, {never, 50, 50, 50}};
  EXPECT_EQ(choose_versions(cycles, 4, 100), (ranges{{0, 1}, {1, 3}}));
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

}  // namespace
}  // namespace kiln::gpu
