#include "aot/passes/separate_windows.hpp"

#include "test/aot/passes/passes_test.hpp"

namespace kiln::testing {
namespace {

std::vector<std::vector<std::int64_t>> windows(const pooling& op, std::vector<dim> dims) {
  const program p = transformed([&](builder& b) { b.out({b.m.add(op, {b.p("x", dims)})}); }, {separate_windows{}});
  std::vector<std::vector<std::int64_t>> found;
  for (const instruction& i : p.main().instructions())
    if (const auto* each = i.op().get_if<pooling>()) found.push_back(each->window);
  return found;
}

using list = std::vector<std::vector<std::int64_t>>;

TEST(separate_windows, divides_large_maxima_by_axes) {
  EXPECT_EQ(windows({pooling_kind::max, {9, 9}, {1, 1}, {1, 1}, {4, 4}, {4, 4}}, {2, 3, 12, 10}),
            (list{{1, 9}, {9, 1}}));
  EXPECT_EQ(windows({pooling_kind::max, {9, 13}, {2, 3}, {2, 1}, {4, 0}, {3, 6}, false, true}, {1, 2, 31, 29}),
            (list{{1, 13}, {9, 1}}));
  EXPECT_EQ(windows({pooling_kind::max, {4, 5, 6}, {1, 1, 1}, {1, 1, 1}, {1, 2, 3}, {2, 2, 2}}, {1, 1, 5, 6, 7}),
            (list{{1, 1, 6}, {1, 5, 1}, {4, 1, 1}}));
}

TEST(separate_windows, keeps_small_windows_and_means) {
  EXPECT_EQ(windows({pooling_kind::max, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}}, {1, 2, 9, 9}), (list{{3, 3}}));
  EXPECT_EQ(windows({pooling_kind::max, {1, 9}, {1, 1}, {1, 1}, {0, 4}, {0, 4}}, {1, 2, 9, 9}), (list{{1, 9}}));
  EXPECT_EQ(windows({pooling_kind::average, {9, 9}, {1, 1}, {1, 1}, {4, 4}, {4, 4}}, {1, 2, 9, 9}), (list{{9, 9}}));
}

}  // namespace
}  // namespace kiln::testing
