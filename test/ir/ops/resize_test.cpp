#include "test/ir/ops/support.hpp"

// Expected values of whole modes are onnxruntime's on the same input.
namespace kiln::testing {
namespace {

const literal image = pattern({1, 1, 3, 4}, 5);

resize to_5_by_7(resize_mode mode, resize_coordinates coordinates = resize_coordinates::half_pixel) {
  return {{1, 1, 5, 7}, {1, 1, 5.0 / 3, 7.0 / 4}, mode, coordinates};
}

void expect_resized(const resize& op, const std::vector<double>& expected) {
  expect_values(run(op, {image}), {1, 1, 5, 7}, expected, 2e-6);
}

TEST(resize, linear_half_pixel) {
  expect_resized(
      to_5_by_7(resize_mode::linear, resize_coordinates::half_pixel),
      {-0.25,      -0.6517857, -1.2946429, -0.5,       0.2946429, -0.3482142, -0.75,      0.2500001,  -0.1517857,
       -0.7946429, -0.575,     -0.2732143, -0.2589286, -0.25,     1,          0.5982143,  -0.0446429, -0.6875,
       -1.1250001, -0.1250001, 0.5,        0.0249998,  0.2392856, 0.5821431,  0.0625002,  -0.4982142, -0.4839286,
       -0.4750003, -0.625,     0,          1.0000001,  0.5625,    -0.0803571, -0.7232142, -1.125});
}

TEST(resize, linear_pytorch_half_pixel) {
  expect_resized(
      to_5_by_7(resize_mode::linear, resize_coordinates::pytorch_half_pixel),
      {-0.25,      -0.6517857, -1.2946429, -0.5,       0.2946429, -0.3482142, -0.75,      0.2500001,  -0.1517857,
       -0.7946429, -0.575,     -0.2732143, -0.2589286, -0.25,     1,          0.5982143,  -0.0446429, -0.6875,
       -1.1250001, -0.1250001, 0.5,        0.0249998,  0.2392856, 0.5821431,  0.0625002,  -0.4982142, -0.4839286,
       -0.4750003, -0.625,     0,          1.0000001,  0.5625,    -0.0803571, -0.7232142, -1.125});
}

TEST(resize, linear_align_corners) {
  expect_resized(
      to_5_by_7(resize_mode::linear, resize_coordinates::align_corners),
      {-0.25,    -0.8125, -1.375,   -0.5,    0.375,  -0.1875, -0.75, 0.375,  -0.1875, -0.75,   -0.59375, -0.4375,
       -0.28125, -0.125,  1,        0.4375,  -0.125, -0.6875, -1.25, -0.375, 0.5,     0.1875,  0.34375,  0.5,
       -0.0625,  -0.625,  -0.46875, -0.3125, -0.625, 0.25,    1.125, 0.5625, 0,       -0.5625, -1.125});
}

TEST(resize, linear_asymmetric) {
  expect_resized(
      to_5_by_7(resize_mode::linear, resize_coordinates::asymmetric),
      {-0.25,      -0.8928572, -1.1249999, -0.125,     0.0535713, -0.5892858, -0.75,      0.5,        -0.1428572,
       -0.6214285, -0.6071429, -0.4285714, -0.0857142, 0,         0.675,      0.3607143,  -0.0357143, -0.6785713,
       -0.6642856, 0.0071429,  0.1749999,  -0.3000001, 0.3714286, 0.7142857,  0.0714287,  -0.4071429, -0.7214287,
       -0.8000001, -0.625,     0.3750001,  0.9642857,  0.3214285, -0.3214287, -0.9642858, -1.125});
}

TEST(resize, linear_half_pixel_symmetric) {
  resize op{{1, 1, 2, 6}, {1, 1, 0.7, 1.6}, resize_mode::linear, resize_coordinates::half_pixel_symmetric};
  expect_values(run(op, {image}), {1, 1, 2, 6},
                {0.1071428, -0.5256697, -0.8437501, -0.2633927, -0.2220982, -0.3928573, -0.1607141, 0.3616072,
                 0.5569195, -0.1462055, -0.4899553, -0.6607141},
                2e-6);
}

TEST(resize, cubic) {
  resize op = to_5_by_7(resize_mode::cubic);
  op.exclude_outside = true;
  expect_resized(
      op, {-0.257791,  -0.8562039, -1.5484749, -0.4467537, 0.5718815,  -0.3323004, -1.0745112, 0.4540517,  -0.1502764,
           -0.9732756, -0.7763002, -0.2369075, -0.1865697, -0.1982744, 1.1378399,  0.7171583,  -0.005095,  -0.9570312,
           -1.1958127, -0.0991614, 0.7144183,  -0.0657935, 0.3259155,  0.7838767,  0.1758377,  -0.5995483, -0.5684062,
           -0.4663255, -1.0697777, -0.1124014, 1.1961609,  1.0404656,  0.0054434,  -0.928721,  -1.4932004});
  op.exclude_outside = false;
  op.cubic_coefficient = -0.5;
  expect_resized(
      op, {-0.2555876, -0.7741781, -1.4661779, -0.4764998, 0.4822656,  -0.3261424, -0.9165828, 0.3815404,  -0.1390748,
           -0.931289,  -0.7153125, -0.2713563, -0.2050606, -0.1957828, 1.0744126,  0.6812361,  -0.041978,  -0.8671875,
           -1.2093886, -0.1137256, 0.6157525,  0.0017492,  0.3147672,  0.7251245,  0.1194377,  -0.5828508, -0.5362694,
           -0.4477825, -0.8569234, -0.0555952, 1.1564758,  0.8451874,  -0.0109344, -0.8505566, -1.3155826});
}

TEST(resize, nearest_modes_half_pixel) {
  resize op = to_5_by_7(resize_mode::nearest);
  op.nearest = resize_nearest::round_prefer_floor;
  expect_resized(op, {-0.25, -0.25, -1.375, -1.375, 0.375,  -0.75,  -0.75, -0.25, -0.25, -1.375, -1.375, 0.375,
                      -0.75, -0.75, 1,      1,      -0.125, -0.125, -1.25, 0.5,   0.5,   -0.625, -0.625, 1.125,
                      1.125, 0,     -1.125, -1.125, -0.625, -0.625, 1.125, 1.125, 0,     -1.125, -1.125});
  op.nearest = resize_nearest::round_prefer_ceil;
  expect_resized(op, {-0.25, -0.25, -1.375, 0.375,  0.375,  -0.75,  -0.75, -0.25, -0.25, -1.375, 0.375,  0.375,
                      -0.75, -0.75, 1,      1,      -0.125, -1.25,  -1.25, 0.5,   0.5,   -0.625, -0.625, 1.125,
                      0,     0,     -1.125, -1.125, -0.625, -0.625, 1.125, 0,     0,     -1.125, -1.125});
  op.nearest = resize_nearest::floor;
  expect_resized(op, {-0.25,  -0.25, -0.25, -1.375, 0.375,  0.375,  -0.75,  -0.25, -0.25, -0.25, -1.375, 0.375,
                      0.375,  -0.75, 1,     1,      1,      -0.125, -1.25,  -1.25, 0.5,   1,     1,      1,
                      -0.125, -1.25, -1.25, 0.5,    -0.625, -0.625, -0.625, 1.125, 0,     0,     -1.125});
  op.nearest = resize_nearest::ceil;
  expect_resized(op, {-0.25, -1.375, -1.375, 0.375,  -0.75,  -0.75, -0.75, 1,   -0.125, -0.125, -1.25, 0.5,
                      0.5,   0.5,    1,      -0.125, -0.125, -1.25, 0.5,   0.5, 0.5,    -0.625, 1.125, 1.125,
                      0,     -1.125, -1.125, -1.125, -0.625, 1.125, 1.125, 0,   -1.125, -1.125, -1.125});
}

TEST(resize, nearest_modes_asymmetric_up_and_down) {
  resize op{{1, 1, 6, 2}, {1, 1, 2, 0.6f}, resize_mode::nearest, resize_coordinates::asymmetric};
  op.nearest = resize_nearest::round_prefer_floor;
  expect_values(run(op, {image}), {1, 1, 6, 2}, {-0.25, 0.375, -0.25, 0.375, 1, -1.25, 1, -1.25, -0.625, 0, -0.625, 0});
  op.nearest = resize_nearest::round_prefer_ceil;
  expect_values(run(op, {image}), {1, 1, 6, 2}, {-0.25, 0.375, 1, -1.25, 1, -1.25, -0.625, 0, -0.625, 0, -0.625, 0});
  op.nearest = resize_nearest::floor;
  expect_values(run(op, {image}), {1, 1, 6, 2},
                {-0.25, -1.375, -0.25, -1.375, 1, -0.125, 1, -0.125, -0.625, 1.125, -0.625, 1.125});
  op.nearest = resize_nearest::ceil;
  expect_values(run(op, {image}), {1, 1, 6, 2}, {-0.25, 0.375, 1, -1.25, 1, -1.25, -0.625, 0, -0.625, 0, -0.625, 0});
}

// 3 / 0.6f is 5 in f32 and just under it in double: the neighbour must be the one onnxruntime takes.
TEST(resize, borders_fall_as_in_f32) {
  resize op{{4}, {0.6f}, resize_mode::nearest, resize_coordinates::asymmetric, resize_nearest::floor};
  expect_values(run(op, {tensor({7}, {0, 1, 2, 3, 4, 5, 6})}), {4}, {0, 1, 3, 5});
}

TEST(resize, integers_stay_exact_and_shrinking_to_one) {
  std::int64_t big = (std::int64_t(1) << 60) + 1;
  resize twice{{4}, {2}, resize_mode::nearest, resize_coordinates::asymmetric, resize_nearest::floor};
  expect_integers(run(twice, {indices({2}, {big, -big})}), {4}, {big, big, -big, -big});
  resize one{{1}, {0.2}, resize_mode::linear, resize_coordinates::align_corners};
  expect_values(run(one, {tensor({5}, {3, 4, 5, 6, 7})}), {1}, {3});
  one.coordinates = resize_coordinates::pytorch_half_pixel;
  expect_values(run(one, {tensor({5}, {3, 4, 5, 6, 7})}), {1}, {3});
  one.coordinates = resize_coordinates::half_pixel;
  expect_values(run(one, {tensor({5}, {3, 4, 5, 6, 7})}), {1}, {5});
}

TEST(resize, refuses_what_does_not_fit) {
  expect_error(error_kind::invalid_model, "one dimension and scale per axis", [] { run(resize{{4}, {2}}, {image}); });
  expect_error(error_kind::invalid_model, "scales must not be negative",
               [] { run(resize{{4}, {-1}}, {tensor({2}, {1, 2})}); });
  expect_values(run(resize{{4}, {0}}, {tensor({2}, {1, 2})}), {4}, {1, 1, 2, 2});  // 0: what the sizes say
  dim height = dim::symbol("height");
  EXPECT_EQ((resize{{1, height * dim(2)}, {1, 2}}.infer(std::vector<shape>{{element_type::f32, {1, height}}})[0].str()),
            "f32[1, 2*height]");
}

}  // namespace
}  // namespace kiln::testing
