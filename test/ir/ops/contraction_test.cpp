#include "test/ir/ops/support.hpp"

namespace kiln::testing {
namespace {

using enum element_type;

// Multiplies [batch, rows, depth] by [batch, depth, columns] by the definition.
std::vector<double> product_by_definition(const literal& a, const literal& b, std::int64_t batch, std::int64_t rows,
                                          std::int64_t depth, std::int64_t columns) {
  std::vector<double> result;
  for (std::int64_t n = 0; n < batch; ++n)
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < depth; ++k)
          sum += a.at((n * rows + i) * depth + k) * b.at((n * depth + k) * columns + j);
        result.push_back(sum);
      }
  return result;
}

TEST(dot, odd_sizes_and_every_transposition) {
  for (auto [batch, rows, depth, columns] : std::vector<std::array<std::int64_t, 4>>{
           {1, 1, 1, 1}, {3, 7, 5, 33}, {2, 9, 70, 65}, {1, 4, 3, 1}, {1, 1, 129, 31}}) {
    literal a = pattern({batch, rows, depth}, 1), b = pattern({batch, depth, columns}, 2);
    literal a_turned = run(transpose{{0, 2, 1}}, {a}), b_turned = run(transpose{{0, 2, 1}}, {b});
    auto expected = product_by_definition(a, b, batch, rows, depth, columns);
    extents dims{batch, rows, columns};
    expect_values(run(dot{}, {a, b}), dims, expected);
    expect_values(run(dot{true, false}, {a_turned, b}), dims, expected);
    expect_values(run(dot{false, true}, {a, b_turned}), dims, expected);
    expect_values(run(dot{true, true}, {a_turned, b_turned}), dims, expected);
  }
}

TEST(dot, large_enough_for_several_threads) {
  literal a = pattern({70, 64}, 3), b = pattern({64, 200}, 4);
  expect_values(run(dot{}, {a, b}), {70, 200}, product_by_definition(a, b, 1, 70, 64, 200));
}

TEST(dot, element_types) {
  literal a8 = tensor(i8, {1, 3}, {-128, 127, 5}), b8 = tensor(u8, {3, 1}, {255, 255, 1});
  expect_integers(run(dot{false, false, i32}, {a8, b8}), {1, 1}, {-128 * 255 + 127 * 255 + 5});
  std::int64_t big = (std::int64_t(1) << 60) + 1;
  expect_integers(run(dot{false, false, i64}, {indices({1, 2}, {big, 3}), indices({2, 1}, {1, 5})}), {1, 1},
                  {big + 15});
  expect_integers(run(dot{false, false, i32}, {tensor(i32, {1, 2}, {-70000, 5}), tensor(i32, {2, 1}, {30000, -3})}),
                  {1, 1}, {-2100000015});
  expect_integers(run(dot{false, false, u32}, {tensor(u32, {1, 2}, {65536, 3}), tensor(u32, {2, 1}, {65536, 7})}),
                  {1, 1}, {21});  // wraps
  expect_values(run(dot{false, false, f32}, {tensor(f16, {1, 2}, {0.5, 3}), tensor(f16, {2, 1}, {0.25, 65504})}),
                {1, 1}, {0.125 + 3 * 65504.0}, 0.01);
  expect_values(run(dot{false, false, bf16}, {tensor(bf16, {1, 2}, {1, 1}), tensor(bf16, {2, 1}, {256, 1})}), {1, 1},
                {256});
}

TEST(dot, empty_and_symbolic) {
  expect_values(run(dot{}, {tensor({2, 0}, {}), tensor({0, 2}, {})}), {2, 2}, {0, 0, 0, 0});
  expect_values(run(dot{}, {tensor({0, 2}, {}), tensor({2, 3}, {1, 2, 3, 4, 5, 6})}), {0, 3}, {});
  dim batch = dim::symbol("batch"), sequence = dim::symbol("sequence");
  shape q{f16, {batch, sequence, 64}};
  EXPECT_EQ((dot{false, true, f32}.infer(std::vector<shape>{q, q})[0].str()), "f32[batch, sequence, sequence]");
  expect_error(error_kind::invalid_model,
               "dot(f16[batch, sequence, 64], f16[batch, sequence, 64]): inner dimensions 64 and sequence differ",
               [&] { dot{false, false, f16}.infer(std::vector<shape>{q, q}); });
  expect_error(error_kind::invalid_model, "cannot give i32",
               [&] { dot{false, true, i32}.infer(std::vector<shape>{q, q}); });
}

// A convolution in channels_first by its definition.
std::vector<double> convolution_by_definition(const convolution& op, const literal& image, const literal& weights,
                                              const extents& out) {
  auto in = image.type().static_dims(), w = weights.type().static_dims();
  std::int64_t filters_per_group = w[0] / op.groups;
  std::vector<double> result;
  for (std::int64_t n = 0; n < out[0]; ++n)
    for (std::int64_t f = 0; f < out[1]; ++f)
      for (std::int64_t y = 0; y < out[2]; ++y)
        for (std::int64_t x = 0; x < out[3]; ++x) {
          double sum = 0;
          for (std::int64_t c = 0; c < w[1]; ++c)
            for (std::int64_t i = 0; i < w[2]; ++i)
              for (std::int64_t j = 0; j < w[3]; ++j) {
                std::int64_t row = y * op.strides[0] + i * op.dilations[0] - op.pads_begin[0],
                             column = x * op.strides[1] + j * op.dilations[1] - op.pads_begin[1];
                if (row < 0 || row >= in[2] || column < 0 || column >= in[3]) continue;
                std::int64_t channel = f / filters_per_group * w[1] + c;
                sum += image.at(((n * in[1] + channel) * in[2] + row) * in[3] + column) *
                       weights.at(((f * w[1] + c) * w[2] + i) * w[3] + j);
              }
          result.push_back(sum);
        }
  return result;
}

TEST(convolution, against_the_definition_in_both_layouts) {
  struct row {
    convolution op;
    extents image, weights, out;
  };
  const row rows[] = {
      {{{1, 1}, {1, 1}, {0, 0}, {0, 0}, 1}, {1, 3, 5, 7}, {4, 3, 1, 1}, {1, 4, 5, 7}},
      {{{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1}, {2, 3, 9, 7}, {5, 3, 3, 3}, {2, 5, 9, 7}},
      {{{2, 3}, {2, 1}, {1, 2}, {0, 3}, 1}, {1, 2, 11, 9}, {3, 2, 3, 5}, {1, 3, 4, 4}},
      {{{2, 1}, {1, 2}, {1, 0}, {2, 1}, 2}, {1, 4, 5, 6}, {6, 2, 3, 2}, {1, 6, 3, 5}},
      {{{1, 2}, {1, 1}, {1, 1}, {1, 1}, 6}, {2, 6, 7, 8}, {6, 1, 3, 3}, {2, 6, 7, 4}},
      {{{2, 2}, {1, 1}, {3, 3}, {3, 3}, 1}, {1, 3, 31, 33}, {9, 3, 7, 7}, {1, 9, 16, 17}},
  };
  for (row r : rows) {
    literal image = pattern(r.image, 1), weights = pattern(r.weights, 2);
    auto expected = convolution_by_definition(r.op, image, weights, r.out);
    expect_values(run(r.op, {image, weights}), r.out, expected);
    r.op.layout = tensor_layout::channels_last;
    expect_values(image_to_first(run(r.op, {image_to_last(image), weights_to_last(weights)})), r.out, expected);
  }
}

TEST(convolution, as_onnxruntime) {
  convolution op{{2, 1}, {1, 2}, {1, 0}, {2, 1}, 2};
  expect_values(
      run(op, {pattern({1, 4, 5, 6}, 1), pattern({6, 2, 3, 2}, 2)}), {1, 6, 3, 5},
      {2.390625,  -0.59375,  1.8125,    2.421875,  -3.28125, -5.796875, 4.1875,    -4.875,    3.671875, 2.34375,
       -0.609375, -0.125,    2.875,     -4.1875,   1.9375,   -0.25,     0.390625,  -2.5625,   1.671875, 0.65625,
       3.421875,  -0.921875, 0.484375,  -5.296875, 2.171875, 2.703125,  -3.96875,  2.65625,   2.453125, -2.828125,
       -1.09375,  -1.859375, 1.328125,  -4.109375, 1.359375, 2.578125,  -1.359375, 0.453125,  3.34375,  -3.390625,
       -0.8125,   1.890625,  -4.390625, 2.265625,  1.03125,  3.234375,  2.140625,  -2.90625,  -0.40625, 0.65625,
       -0.625,    -2,        3.09375,   -4.75,     -2.375,   3.046875,  2.1875,    -4.0625,   1.90625,  0.8125,
       -0.40625,  -2.90625,  2.140625,  3.234375,  -0.9375,  3.5,       0.015625,  -5.265625, 3.828125, 1.734375,
       -6.140625, 2.375,     2.984375,  -3.953125, 1.65625,  1.703125,  -3.640625, 1.796875,  0.046875, -1.8125,
       -1,        3.46875,   -2.125,    0.90625,   1.171875, -0.59375,  -2.46875,  1.765625,  3.484375, -1.09375});
}

TEST(convolution, one_and_three_spatial_axes) {
  for (tensor_layout layout : {tensor_layout::channels_first, tensor_layout::channels_last}) {
    bool last = layout == tensor_layout::channels_last;
    auto convolved = [&](convolution op, literal image, literal weights) {
      op.layout = layout;
      return last ? image_to_first(run(op, {image_to_last(image), weights_to_last(weights)}))
                  : run(op, {image, weights});
    };
    expect_values(convolved({{2}, {1}, {1}, {1}}, pattern({1, 2, 7}, 1), pattern({3, 2, 3}, 2)), {1, 3, 4},
                  {1.3125, -1.96875, -1.25, 0.75, -2.25, -2.9375, 0.5, 1, 0.65625, 2.5625, 0.453125, -2.34375});
    expect_values(convolved({{1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}}, pattern({1, 1, 3, 3, 3}, 1),
                            pattern({1, 1, 2, 2, 2}, 2)),
                  {1, 1, 2, 2, 2}, {1.078125, -0.296875, 1.984375, 1.6875, 1.640625, -0.8125, -2.125, 1.171875});
  }
}

TEST(convolution, integers_sum_in_i32) {
  convolution op{{1}, {1}, {0}, {0}};
  literal image = tensor(u8, {1, 2, 2}, {255, 255, 255, 0}), weights = tensor(i8, {1, 2, 1}, {127, -128});
  literal result = run(op, {image, weights});
  EXPECT_EQ(result.type().str(), "i32[1, 1, 2]");
  expect_integers(result, {1, 1, 2}, {255 * 127 - 255 * 128, 255 * 127});
}

TEST(convolution, symbolic_shapes_and_refusals) {
  dim batch = dim::symbol("batch"), height = dim::symbol("height");
  convolution op{{2, 2}, {1, 1}, {3, 3}, {3, 3}};
  shape weights = shape_of(f32, {64, 3, 7, 7});
  shape out = op.infer(std::vector<shape>{{f32, {batch, 3, height, 224}}, weights})[0];
  EXPECT_EQ(out.substitute({{"batch", 2}, {"height", 225}}).str(), "f32[2, 64, 113, 112]");
  EXPECT_EQ(out.dims[0].str(), "batch");
  expect_error(error_kind::invalid_model, "weights for 1 x 3 channels meet an image of 4",
               [&] { op.infer(std::vector<shape>{shape_of(f32, {1, 4, 9, 9}), weights}); });
  expect_error(error_kind::invalid_model, "a window of 7 does not fit into 0",
               [&] { op.infer(std::vector<shape>{shape_of(f32, {1, 3, 0, 9}), weights}); });
  expect_error(error_kind::invalid_model, "one entry per spatial axis",
               [&] { op.infer(std::vector<shape>{shape_of(f32, {1, 3, 9}), shape_of(f32, {4, 3, 3})}); });
  op.groups = 3;
  expect_error(error_kind::invalid_model, "64 filters do not divide into 3 groups",
               [&] { op.infer(std::vector<shape>{shape_of(f32, {1, 9, 9, 9}), weights}); });
}

TEST(transposed_convolution, as_onnxruntime_in_both_layouts) {
  transposed_convolution op{{2, 3}, {2, 1}, {1, 0}, {0, 1}, {1, 0}, 2};
  literal image = pattern({1, 4, 3, 2}, 1), weights = pattern({4, 1, 3, 2}, 2);
  extents dims{1, 2, 9, 4};
  std::vector<double> expected{
      0,        0,        0, 0,      -0.28125,  0.5625,   0, 1.5625,   0,         0,        0, 0,
      2.140625, 0.21875,  0, 1,      0,         0,        0, 0,        -0.53125,  0.015625, 0, -2.578125,
      0,        0,        0, 0,      -0.625,    -1.59375, 0, 1.0625,   0,         0,        0, 0,
      0,        0,        0, 0,      1.609375,  -2.5625,  0, 0.234375, 0,         0,        0, 0,
      1.96875,  0.609375, 0, 0.3125, 0,         0,        0, 0,        -2.171875, 3.0625,   0, 0.46875,
      0,        0,        0, 0,      -0.890625, 1.921875, 0, 0.625,    0,         0,        0, 0};
  expect_values(run(op, {image, weights}), dims, expected);
  op.layout = tensor_layout::channels_last;
  expect_values(image_to_first(run(op, {image_to_last(image), weights_to_last(weights)})), dims, expected);
}

// <conv(x), y> = <x, transposed_conv(y)> for every x and y, with the same weights.
TEST(transposed_convolution, is_the_adjoint_of_convolution) {
  convolution forward{{2, 1}, {1, 2}, {1, 2}, {1, 0}, 3};
  transposed_convolution backward{forward.strides, forward.dilations, forward.pads_begin, forward.pads_end, {0, 0}, 3};
  literal x = pattern({2, 6, 7, 8}, 1), weights = pattern({9, 2, 3, 3}, 2);
  literal image = run(forward, {x, weights});
  literal y = pattern(image.type().static_dims(), 3), back = run(backward, {y, weights});
  ASSERT_EQ(back.type().str(), x.type().str());
  auto inner = [](const literal& a, const literal& b) {
    double sum = 0;
    for (std::int64_t i = 0; i < a.type().element_count(); ++i) sum += a.at(i) * b.at(i);
    return sum;
  };
  EXPECT_DOUBLE_EQ(inner(image, y), inner(x, back));
  EXPECT_NE(inner(image, y), 0);
}

}  // namespace
}  // namespace kiln::testing
