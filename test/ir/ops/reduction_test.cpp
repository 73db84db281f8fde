#include <limits>

#include "test/ir/ops/support.hpp"

namespace kiln::testing {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
using enum element_type;
using kind = reduction_kind;

const literal eight = tensor({2, 2, 2}, {1, -2, 3, 4, 5, 6, -7, 8});

TEST(reduce, every_kind_over_any_axes) {
  expect_values(run(reduce{kind::sum, {0, 2}}, {eight}), {2}, {10, 8});
  expect_values(run(reduce{kind::sum, {1}, true}, {eight}), {2, 1, 2}, {4, 2, -2, 14});
  expect_values(run(reduce{kind::mean, {0, 1, 2}}, {eight}), {}, {18.0 / 8});
  expect_values(run(reduce{kind::max, {0}}, {eight}), {2, 2}, {5, 6, 3, 8});
  expect_values(run(reduce{kind::min, {2}}, {eight}), {2, 2}, {-2, 3, 5, -7});
  expect_values(run(reduce{kind::product, {1, 2}}, {eight}), {2}, {-24, -1680});
  expect_values(run(reduce{kind::sum, {}}, {eight}), {2, 2, 2}, {1, -2, 3, 4, 5, 6, -7, 8});
}

TEST(reduce, nothing_and_nan) {
  literal none = tensor({2, 0}, {});
  expect_values(run(reduce{kind::sum, {1}}, {none}), {2}, {0, 0});
  expect_values(run(reduce{kind::product, {1}}, {none}), {2}, {1, 1});
  expect_values(run(reduce{kind::max, {1}}, {none}), {2}, {-inf, -inf});
  expect_values(run(reduce{kind::min, {1}}, {none}), {2}, {inf, inf});
  expect_values(run(reduce{kind::mean, {1}}, {none}), {2}, {nan, nan});
  literal holed = tensor({2, 3}, {1, nan, 2, -inf, -3, -4});
  expect_values(run(reduce{kind::max, {1}}, {holed}), {2}, {nan, -3});
  expect_values(run(reduce{kind::min, {1}}, {holed}), {2}, {nan, -inf});
  expect_values(run(reduce{kind::max, {1}}, {tensor({1, 2}, {-inf, -inf})}), {1}, {-inf});
}

TEST(reduce, element_types) {
  std::int64_t big = (std::int64_t(1) << 60) + 1;
  expect_integers(run(reduce{kind::sum, {0}}, {indices({3}, {big, 1, -2})}), {}, {big - 1});
  expect_integers(run(reduce{kind::mean, {0}}, {indices({3}, {-7, -1, 0})}), {}, {-2});
  expect_integers(run(reduce{kind::max, {0}}, {indices({2}, {-5, -9})}), {}, {-5});
  expect_integers(run(reduce{kind::min, {0}}, {tensor(u8, {2}, {200, 100})}), {}, {100});
  expect_integers(run(reduce{kind::max, {0}}, {tensor(boolean, {2}, {0, 1})}), {}, {1});
  // 4096 f16 numbers of 1.25: exact in wide sums, but an f16 sum would stop growing at 2048.
  expect_values(run(reduce{kind::sum, {0}}, {literal::filled(shape_of(f16, {4096}), 1.25)}), {}, {5120});
  expect_values(run(reduce{kind::sum, {0}}, {tensor({3}, {1e8, 1, -1e8})}), {}, {1});
  expect_error(error_kind::invalid_model, "cannot compute with this element type",
               [] { run(reduce{kind::sum, {0}}, {tensor(boolean, {1}, {1})}); });
  expect_error(error_kind::invalid_model, "sorted and distinct", [] { run(reduce{kind::sum, {1, 0}}, {eight}); });
}

TEST(arg_reduce, first_or_last_of_equals) {
  literal x = tensor({2, 4}, {3, 7, 7, 1, nan, 5, -2, nan});
  expect_integers(run(arg_reduce{true, 1}, {x}), {2}, {1, 0});
  expect_integers(run(arg_reduce{true, 1, false, true}, {x}), {2}, {2, 3});
  expect_integers(run(arg_reduce{false, -1, true}, {x}), {2, 1}, {3, 0});
  expect_integers(run(arg_reduce{false, 0}, {tensor(i32, {2, 3}, {1, 2, 3, 1, -2, 5})}), {3}, {0, 1, 0});
  expect_error(error_kind::invalid_model, "an empty axis", [] { run(arg_reduce{true, 0}, {tensor({0, 2}, {})}); });
}

TEST(softmax, as_onnxruntime) {
  literal x = pattern({2, 3, 2}, 1);
  expect_values(run(softmax{1}, {x}), {2, 3, 2},
                {0.1572676, 0.1572676, 0.2938146, 0.2938146, 0.5489178, 0.5489178, 0.1572676, 0.3262475, 0.2938146,
                 0.6095105, 0.5489178, 0.0642419},
                1e-7);
  expect_values(run(softmax{-2, true}, {x}), {2, 3, 2},
                {-1.8498065, -1.8498065, -1.2248065, -1.2248065, -0.5998065, -0.5998065, -1.8498065, -1.120099,
                 -1.2248065, -0.495099, -0.5998065, -2.745099},
                1e-6);
}

TEST(softmax, survives_extremes) {
  expect_values(run(softmax{}, {tensor({2, 3}, {1000, 1000, -1000, -inf, 0, -inf})}), {2, 3}, {0.5, 0.5, 0, 0, 1, 0});
  expect_values(run(softmax{}, {tensor({2, 2}, {-inf, -inf, nan, 1})}), {2, 2}, {nan, nan, nan, nan});
  expect_error(error_kind::invalid_model, "softmax(i64[2]): needs a floating-point operand",
               [] { run(softmax{}, {indices({2}, {1, 2})}); });
}

TEST(normalize, as_onnxruntime_and_by_formula) {
  expect_values(run(normalize{{1, 2}, 1e-3}, {pattern({2, 2, 3}, 1)}), {2, 2, 3},
                {-0.082221, -1.5621986, 0.7399888, -0.7399888, 1.5621986, 0.082221, -1.188668, 0.8490486, -0.460912,
                 1.5768044, 0.2668438, -1.0431167},
                1e-6);
  double rms = std::sqrt((9 + 16) / 2.0 + 0.5);
  expect_values(run(normalize{{1}, 0.5, false}, {tensor({1, 2}, {3, 4})}), {1, 2}, {3 / rms, 4 / rms}, 1e-7);
  // A large common offset: one-pass variances would lose all digits.
  expect_values(run(normalize{{0}, 0}, {tensor({3}, {1e6 - 1, 1e6, 1e6 + 1})}), {3},
                {-std::sqrt(1.5), 0, std::sqrt(1.5)}, 1e-6);
  // Instance normalization: an axis in the middle is kept.
  literal x = tensor({2, 1, 2}, {0, 2, 2, 4});
  expect_values(run(normalize{{0, 2}, 0}, {x}), {2, 1, 2}, {-std::sqrt(2), 0, 0, std::sqrt(2)}, 1e-6);
}

TEST(cumulative_sum, every_direction) {
  literal x = tensor({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_values(run(cumulative_sum{1}, {x}), {2, 3}, {1, 3, 6, 4, 9, 15});
  expect_values(run(cumulative_sum{-1, true}, {x}), {2, 3}, {0, 1, 3, 0, 4, 9});
  expect_values(run(cumulative_sum{0, false, true}, {x}), {2, 3}, {5, 7, 9, 4, 5, 6});
  expect_values(run(cumulative_sum{1, true, true}, {pattern({2, 3}, 1)}), {2, 3}, {-0.5, 0.625, 0, 1.375, 0.125, 0});
  std::int64_t big = (std::int64_t(1) << 60) + 1;
  expect_integers(run(cumulative_sum{0}, {indices({3}, {big, 1, -big})}), {3}, {big, big + 1, 1});
}

}  // namespace
}  // namespace kiln::testing
