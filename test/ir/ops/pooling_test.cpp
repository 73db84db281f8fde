#include <limits>

#include "test/ir/ops/support.hpp"

namespace kiln::testing {
namespace {

const literal image = pattern({1, 2, 5, 6}, 3);
constexpr auto average = pooling_kind::average, maximum = pooling_kind::max;

// Expected values are onnxruntime's; the other layout must give the same.
void expect_pooled(pooling op, const extents& dims, const std::vector<double>& expected) {
  expect_values(run(op, {image}), dims, expected, 1e-6);
  op.layout = tensor_layout::channels_last;
  expect_values(image_to_first(run(op, {image_to_last(image)})), dims, expected, 1e-6);
}

TEST(pooling, maximum_with_ceil_mode) {
  expect_pooled({maximum, {2, 3}, {2, 2}, {1, 1}, {0, 1}, {0, 1}, false, true}, {1, 2, 3, 4},
                {0.625, 1.25,  1.25,  0,    0.75, 1.375, 1, 0.875, 0.5,  1.125, 1.125, -1.125,
                 1.375, 1.375, 0.875, 0.75, 0.5,  1.125, 1, 0.625, 1.25, 1.25,  0.75,  -0.375});
}

TEST(pooling, maximum_with_dilation) {
  expect_pooled({maximum, {2, 2}, {1, 2}, {2, 3}, {0, 0}, {0, 0}}, {1, 2, 3, 2},
                {0.75, 1.375, 1.25, 0.375, 1.125, 1.375, 1, 1.25, 0.5, 1.125, 1, 0.125});
}

TEST(pooling, average_counts_padding_or_not) {
  pooling op{average, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {0, 1}};
  expect_pooled(op, {1, 2, 2, 3},
                {-0.46875, 0, 0.1458333, -0.2916667, 0.0972222, 0.0833333, 0.28125, 0.2708333, -0.0625, -0.0208333,
                 0.2083333, -0.125});
  op.count_padding = true;
  expect_pooled(op, {1, 2, 2, 3},
                {-0.2083333, 0, 0.0972222, -0.1944444, 0.0972222, 0.0833333, 0.125, 0.1805556, -0.0416667, -0.0138889,
                 0.2083333, -0.125});
  // Window positions beyond the padding never count.
  op.ceil_mode = true;
  expect_pooled(op, {1, 2, 3, 4},
                {-0.2083333, 0,         0.0972222, -0.1666667, -0.1944444, 0.0972222, 0.0833333,  -0.0416667,
                 -0.3958333, -0.125,    0.0208333, -0.3125,    0.125,      0.1805556, -0.0416667, 0.0833333,
                 -0.0138889, 0.2083333, -0.125,    -0.1458333, 0.1041667,  0.1458333, -0.1875,    0.0625});
  op.count_padding = false;
  expect_pooled(op, {1, 2, 3, 4},
                {-0.46875,   0,         0.1458333, -0.5,       -0.2916667, 0.0972222, 0.0833333, -0.0833333,
                 -0.59375,   -0.125,    0.0208333, -0.625,     0.28125,    0.2708333, -0.0625,   0.25,
                 -0.0208333, 0.2083333, -0.125,    -0.2916667, 0.15625,    0.1458333, -0.1875,   0.125});
}

TEST(pooling, one_axis_three_axes_integers_and_nan) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  expect_values(run(pooling{maximum, {2}, {2}, {1}, {1}, {0}}, {tensor({1, 1, 5}, {-3, -4, nan, -1, -2})}), {1, 1, 3},
                {-3, nan, -1});
  expect_values(run(pooling{average, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
                    {tensor({1, 1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 9})}),
                {1, 1, 1, 1, 1}, {37.0 / 8});
  expect_integers(run(pooling{maximum, {2}, {1}, {1}, {1}, {1}}, {tensor(element_type::i8, {1, 1, 3}, {-128, -5, -7})}),
                  {1, 1, 4}, {-128, -5, -5, -7});
}

TEST(pooling, symbolic_shapes_and_refusals) {
  dim batch = dim::symbol("batch"), width = dim::symbol("width");
  shape in{element_type::f32, {batch, 8, width}};
  pooling op{maximum, {3}, {2}, {1}, {1}, {1}};
  shape out = op.infer(std::vector<shape>{in})[0];
  EXPECT_EQ(out.substitute({{"batch", 2}, {"width", 12}}).str(), "f32[2, 8, 6]");
  op.ceil_mode = true;  // the last window cannot start outside: 1 + 2 - 1 < 3
  EXPECT_EQ(op.infer(std::vector<shape>{in})[0].substitute({{"batch", 2}, {"width", 12}}).str(), "f32[2, 8, 7]");
  op.strides = {3};
  shape open = op.infer(std::vector<shape>{in})[0];
  for (std::int64_t width : {1, 2, 5, 6, 7, 8, 9})
    EXPECT_EQ(open.substitute({{"batch", 2}, {"width", width}}),
              op.infer(std::vector<shape>{shape_of(element_type::f32, {2, 8, width})})[0]);
  EXPECT_EQ(op.infer(std::vector<shape>{shape_of(element_type::f32, {1, 1, 5})})[0].str(),
            "f32[1, 1, 2]");  // a third would start at 6 = 5 + 1
  EXPECT_EQ(op.infer(std::vector<shape>{shape_of(element_type::f32, {1, 1, 6})})[0].str(), "f32[1, 1, 3]");
  expect_error(error_kind::invalid_model, "empty image",
               [&] { op.infer(std::vector<shape>{shape_of(element_type::f32, {1, 1, 0})}); });
  // Window and dilation whose product wraps to an extent of one.
  for (const pooling& huge : {pooling{maximum, {(std::int64_t{1} << 32) + 1}, {1}, {std::int64_t{1} << 32}, {0}, {0}},
                              pooling{maximum, {1}, {INT64_MAX}, {1}, {0}, {0}, false, true}})
    expect_error(error_kind::invalid_model, "must not exceed 2147483648",
                 [&] { huge.infer(std::vector<shape>{shape_of(element_type::f32, {1, 1, 5})}); });
  expect_error(error_kind::invalid_model, "floating-point", [] {
    pooling{average, {1}, {1}, {1}, {0}, {0}}.infer(std::vector<shape>{shape_of(element_type::i8, {1, 1, 5})});
  });
}

}  // namespace
}  // namespace kiln::testing
