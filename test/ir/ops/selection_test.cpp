#include <limits>

#include "test/ir/ops/support.hpp"

namespace kiln::testing {
namespace {

TEST(top_k, smallest_along_a_middle_axis) {  // onnxruntime
  auto results = run_all(top_k{3, 1, false}, {pattern({2, 5, 2}, 1)});
  expect_values(results[0], {2, 3, 2},
                {-1, -1.125, -0.375, -0.5, 0, 0.125, -1.375, -1.25, -0.75, -0.875, -0.125, -0.25});
  expect_integers(results[1], {2, 3, 2}, {3, 0, 4, 1, 0, 2, 2, 4, 3, 0, 4, 1});
}

TEST(top_k, equal_elements_in_order_of_index_and_nan_first) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  auto results = run_all(top_k{5}, {tensor({6}, {2, 7, nan, 7, 2, 1})});
  expect_values(results[0], {5}, {nan, 7, 7, 2, 2});
  expect_integers(results[1], {5}, {2, 1, 3, 0, 4});
  results = run_all(top_k{6, 0, false}, {tensor({6}, {2, 7, nan, 7, 2, 1})});
  expect_integers(results[1], {6}, {5, 0, 4, 1, 3, 2});
}

TEST(top_k, wide_integers_bounds_and_symbols) {
  std::int64_t big = (std::int64_t(1) << 60) + 1;
  auto results = run_all(top_k{1}, {indices({3}, {big - 1, big, 4})});
  expect_integers(results[0], {1}, {big});
  expect_integers(run_all(top_k{0}, {indices({3}, {1, 2, 3})})[1], {0}, {});
  expect_error(error_kind::invalid_model, "cannot choose 4 of 3 elements",
               [] { run(top_k{4}, {indices({3}, {1, 2, 3})}); });
  auto out = top_k{2}.infer(std::vector<shape>{{element_type::f16, {dim::symbol("batch"), 9}}});
  EXPECT_EQ(out[0].str() + " " + out[1].str(), "f16[batch, 2] i64[batch, 2]");
}

}  // namespace
}  // namespace kiln::testing
