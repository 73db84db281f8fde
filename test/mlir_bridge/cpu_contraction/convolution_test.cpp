#include <gtest/gtest.h>

#include <algorithm>

#include "fusions.hpp"
#include "harness.hpp"

namespace kiln::test {
namespace {

struct convolution_case {
  std::string name;
  dims_of image, weights;  // channels_last
  convolution op;
};

const convolution_case convolution_cases[] = {
    {"pointwise", {2, 7, 9, 17}, {1, 1, 17, 35}, {{1, 1}, {1, 1}, {0, 0}, {0, 0}}},
    {"pointwise_strided", {2, 9, 8, 16}, {1, 1, 16, 40}, {{2, 2}, {1, 1}, {0, 0}, {0, 0}}},
    {"same_3x3", {1, 14, 14, 16}, {3, 3, 16, 64}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"same_3x3_wide", {1, 5, 56, 24}, {3, 3, 24, 33}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"same_3x3_narrow", {2, 7, 7, 13}, {3, 3, 13, 65}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"stride_2", {1, 15, 17, 16}, {3, 3, 16, 31}, {{2, 2}, {1, 1}, {1, 1}, {1, 1}}},
    {"stride_2_uneven_pads", {1, 15, 18, 20}, {3, 3, 20, 32}, {{2, 2}, {1, 1}, {0, 0}, {1, 1}}},
    {"first_layer", {1, 31, 33, 3}, {7, 7, 3, 16}, {{2, 2}, {1, 1}, {3, 3}, {3, 3}}},
    {"patches", {1, 32, 32, 3}, {8, 8, 3, 24}, {{8, 8}, {1, 1}, {0, 0}, {0, 0}}},
    {"dilated", {1, 13, 15, 16}, {3, 3, 16, 17}, {{1, 1}, {2, 3}, {2, 3}, {2, 3}}},
    {"dilated_far", {1, 9, 9, 16}, {3, 3, 16, 8}, {{1, 1}, {12, 12}, {12, 12}, {12, 12}}},
    {"uneven", {1, 8, 11, 5}, {4, 2, 5, 7}, {{1, 3}, {1, 2}, {0, 2}, {3, 1}}},
    {"large_pads", {1, 4, 5, 16}, {3, 3, 16, 8}, {{1, 1}, {1, 1}, {4, 5}, {3, 6}}},
    {"grouped", {1, 9, 14, 32}, {3, 3, 8, 48}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 4}},
    {"grouped_odd", {2, 7, 6, 15}, {3, 2, 5, 21}, {{2, 1}, {1, 1}, {1, 0}, {0, 1}, 3}},
    {"grouped_small", {1, 6, 14, 48}, {3, 3, 4, 36}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 12}},
    {"grouped_of_two", {1, 5, 9, 14}, {3, 3, 2, 21}, {{2, 1}, {1, 1}, {1, 1}, {1, 1}, 7}},
    {"grouped_of_eight", {2, 7, 30, 48}, {3, 3, 8, 48}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 6}},
    {"grouped_of_four_strided", {1, 9, 14, 40}, {3, 3, 4, 40}, {{2, 2}, {1, 1}, {1, 1}, {1, 1}, 10}},
    {"grouped_of_two_wide", {1, 3, 40, 32}, {3, 5, 2, 64}, {{1, 1}, {1, 2}, {1, 4}, {1, 4}, 16}},
    {"grouped_four_to_two", {1, 6, 7, 32}, {3, 3, 4, 16}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 8}},
    {"grouped_two_to_eight", {1, 6, 7, 12}, {3, 3, 2, 48}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 6}},
    {"grouped_long_window", {1, 4, 90, 16}, {1, 31, 8, 16}, {{1, 1}, {1, 1}, {0, 15}, {0, 15}, 2}},
    {"grouped_pointwise", {2, 5, 6, 24}, {1, 1, 4, 30}, {{1, 1}, {1, 1}, {0, 0}, {0, 0}, 6}},
    {"line", {2, 33, 12}, {5, 12, 20}, {{1}, {1}, {2}, {2}}},
    {"line_strided", {1, 50, 4}, {3, 4, 33}, {{2}, {2}, {1}, {0}}},
    {"volume", {1, 5, 6, 7, 8}, {3, 3, 3, 8, 17}, {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}}},
    {"volume_strided", {1, 6, 7, 9, 3}, {2, 3, 2, 3, 5}, {{2, 1, 3}, {1, 2, 1}, {0, 1, 1}, {1, 2, 0}}},
    {"one_pixel", {1, 3, 3, 16}, {3, 3, 16, 16}, {{1, 1}, {1, 1}, {0, 0}, {0, 0}}},
    {"few_products", {1, 10, 12, 32}, {3, 3, 32, 64}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"few_products_odd", {2, 9, 7, 48}, {3, 3, 48, 80}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"few_products_inside", {1, 12, 9, 32}, {3, 3, 32, 32}, {{1, 1}, {1, 1}, {0, 0}, {0, 0}}},
    {"few_products_uneven_pads", {1, 8, 9, 32}, {3, 3, 32, 160}, {{1, 1}, {1, 1}, {0, 2}, {2, 0}}},
    {"few_products_deep", {1, 8, 8, 160}, {3, 3, 160, 32}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"few_products_large_pads", {1, 5, 6, 32}, {3, 3, 32, 48}, {{1, 1}, {1, 1}, {4, 5}, {3, 6}}},
    {"depthwise", {1, 14, 15, 40}, {3, 3, 1, 40}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 40}},
    {"depthwise_odd", {2, 9, 7, 23}, {3, 3, 1, 23}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 23}},
    {"depthwise_strided", {1, 17, 16, 33}, {5, 5, 1, 33}, {{2, 2}, {1, 1}, {2, 1}, {2, 2}, 33}},
    {"depthwise_multiplied", {1, 8, 9, 6}, {3, 3, 1, 18}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 6}},
    {"depthwise_doubled", {1, 8, 9, 16}, {3, 3, 1, 32}, {{1, 1}, {1, 1}, {1, 1}, {0, 2}, 16}},
    {"depthwise_doubled_odd", {1, 8, 9, 23}, {3, 3, 1, 46}, {{2, 2}, {1, 1}, {1, 1}, {1, 1}, 23}},
    {"depthwise_fourfold", {1, 7, 8, 11}, {3, 3, 1, 44}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 11}},
    {"depthwise_thirty_two_fold", {2, 5, 6, 3}, {3, 3, 1, 96}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 3}},
    {"depthwise_dilated", {1, 11, 13, 16}, {3, 3, 1, 16}, {{1, 1}, {2, 4}, {2, 4}, {2, 4}, 16}},
    {"depthwise_large_window", {1, 12, 13, 16}, {3, 9, 1, 16}, {{1, 1}, {1, 1}, {1, 4}, {1, 4}, 16}},
    {"depthwise_small_image", {1, 2, 2, 16}, {5, 5, 1, 16}, {{1, 1}, {1, 1}, {2, 2}, {2, 2}, 16}},
    {"depthwise_line", {1, 30, 20}, {4, 1, 20}, {{1}, {1}, {3}, {0}, 20}},
    {"depthwise_volume", {1, 4, 5, 6, 9}, {3, 3, 3, 1, 9}, {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 9}},
};

class convolutions : public testing::TestWithParam<convolution_case> {};

TEST_P(convolutions, agree_in_f32) {
  expect_matches(*convolution_fusion(GetParam().image, GetParam().weights, GetParam().op), 1e-6);
}
TEST_P(convolutions, agree_in_f16) {
  expect_matches(*convolution_fusion(GetParam().image, GetParam().weights, GetParam().op, element_type::f16), 2e-3);
}
TEST_P(convolutions, take_bias_relu_and_residual) {
  expect_matches(*convolution_fusion(GetParam().image, GetParam().weights, GetParam().op, element_type::f32,
                                     epilogue::bias_relu_residual),
                 1e-6);
}
TEST_P(convolutions, take_a_sigmoid) {
  expect_matches(
      *convolution_fusion(GetParam().image, GetParam().weights, GetParam().op, element_type::f32, epilogue::sigmoid),
      1e-6);
}
// Channels in the middle of a larger image, read where they are or copied together with the border.
TEST_P(convolutions, read_some_channels) {
  const convolution_case& of = GetParam();
  expect_matches(*channels_fusion(of.image, 16, 8, of.weights, of.op), 1e-6);
  expect_matches(*channels_fusion(of.image, 0, 5, of.weights, of.op, element_type::f32, epilogue::bias_relu), 1e-6);
  expect_matches(*channels_fusion(of.image, 3, 0, of.weights, of.op, element_type::f16), 2e-3);
}

INSTANTIATE_TEST_SUITE_P(All, convolutions, testing::ValuesIn(convolution_cases),
                         [](const auto& info) { return info.param.name; });

TEST(convolution_types, agree_in_f64_and_bf16) {
  const convolution op{{1, 1}, {1, 1}, {1, 1}, {1, 1}};
  expect_matches(*convolution_fusion({1, 6, 7, 13}, {3, 3, 13, 19}, op, element_type::f64), 1e-14);
  expect_matches(*convolution_fusion({1, 6, 7, 13}, {3, 3, 13, 19}, op, element_type::bf16), 1e-2);
  const convolution depthwise{{1, 1}, {1, 1}, {1, 1}, {1, 1}, 13};
  expect_matches(*convolution_fusion({1, 6, 7, 13}, {3, 3, 1, 13}, depthwise, element_type::f64), 1e-14);
  expect_matches(*convolution_fusion({1, 6, 7, 13}, {3, 3, 1, 13}, depthwise, element_type::bf16), 1e-2);
}

TEST(convolution_types, channels_are_read_where_they_are) {
  const convolution same{{1, 1}, {1, 1}, {1, 1}, {1, 1}}, depthwise{{1, 1}, {1, 1}, {1, 1}, {1, 1}, 16};
  for (const target_row& row : rows_here())
    for (const auto& m : {channels_fusion({1, 14, 14, 16}, 16, 0, {3, 3, 16, 64}, same),
                          channels_fusion({1, 14, 14, 16}, 16, 0, {3, 3, 1, 16}, depthwise)}) {
      const native_kernel kernel = compile_fusion(*m, row);
      // One launch besides the packing of weights: no copy of the image.
      EXPECT_EQ(std::ranges::count(kernel.launches, false, &launch::prepare), 1);
    }
}

struct normalized_case {
  dims_of image;
  std::vector<std::int64_t> window;
  convolution op;
};

// One launch computes the convolution, adds the bias, normalizes the channels, scales them and adds a residual.
TEST(convolutions, depthwise_with_their_normalization) {
  const std::vector<normalized_case> cases{
      {{1, 14, 14, 32}, {7, 7}, {{1, 1}, {1, 1}, {3, 3}, {3, 3}, 32}},
      {{2, 9, 7, 24}, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 24}},
      {{1, 17, 16, 40}, {5, 5}, {{2, 2}, {1, 1}, {2, 1}, {2, 2}, 40}},
      {{1, 2, 2, 16}, {5, 5}, {{1, 1}, {1, 1}, {2, 2}, {2, 2}, 16}},
      {{1, 11, 13, 8}, {3, 3}, {{1, 1}, {2, 4}, {2, 4}, {2, 4}, 8}},
      {{1, 3, 70, 768}, {3, 3}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 768}},  // parts of lines
      {{1, 1, 9, 2048}, {1, 5}, {{1, 1}, {1, 1}, {0, 2}, {0, 2}, 2048}},
      {{2, 300, 56}, {4}, {{1}, {1}, {3}, {0}, 56}},
      {{1, 4, 5, 6, 16}, {3, 3, 3}, {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 16}}};
  for (const auto& [image, window, shape_of_case] : cases)
    for (const element_type type : {element_type::f32, element_type::bf16})
      for (const bool centered : {true, false}) {
        auto m = std::make_unique<module>("kernel");
        convolution op = shape_of_case;
        op.layout = tensor_layout::channels_last;
        dims_of weights = window;
        weights.push_back(1), weights.push_back(image.back());
        value y =
            m->add(op, {m->add_parameter("x", shape_of(type, image)), m->add_parameter("w", shape_of(type, weights))});
        const std::vector<dim> dims = y.type().dims;
        auto per_channel = [&](const char* name) {
          return m->add(broadcast{dims}, {m->add_parameter(name, shape_of(type, {image.back()}))});
        };
        auto apply = [&](scalar_function f, value a, value b) { return m->add(elementwise{f}, {a, b}); };
        y = apply(scalar_function::add, y, per_channel("bias"));
        y = m->add(normalize{{static_cast<std::int64_t>(dims.size()) - 1}, 1e-3, centered}, {y});
        y = apply(scalar_function::mul, y, per_channel("scale"));
        y = apply(scalar_function::add, y, m->add_parameter("residual", y.type()));
        m->set_outputs({y}, {"y"});
        for (const target_row& row : rows_here()) EXPECT_EQ(compile_fusion(*m, row).launches.size(), 1u);
        expect_matches(*m, type == element_type::f32 ? 1e-6 : 1e-2);
        if (HasFatalFailure()) return;
      }
}

TEST(winograd, agrees_in_every_configuration) {
  const convolution op{{1, 1}, {1, 1}, {1, 1}, {1, 1}};
  const auto m =
      convolution_fusion({1, 15, 18, 32}, {3, 3, 32, 96}, op, element_type::f32, epilogue::bias_relu_residual);
  for (const target_row& row : rows_here()) {
    EXPECT_TRUE(compile_fusion(*m, row).launches.back().symbol.ends_with("winograd"));
    EXPECT_FALSE(compile_fusion(*m, row, {{"winograd", 0}}).launches.back().symbol.ends_with("winograd"));
  }
  for (std::int64_t patches : {1, 7, 24, 1000})
    for (std::int64_t n : {16, 64}) {
      expect_matches(*m, 1e-6, {{"patches", patches}, {"tile_n", n}, {"unroll", 2}});
      if (HasFatalFailure()) return;
    }
  expect_matches(*m, 1e-6, {{"winograd", 0}});
}

TEST(winograd, only_where_it_gains) {
  auto uses = [](const dims_of& image, const dims_of& weights, const convolution& op,
                 element_type type = element_type::f32) {
    return compile_fusion(*convolution_fusion(image, weights, op, type), v3_row())
        .launches.back()
        .symbol.ends_with("winograd");
  };
  const convolution same{{1, 1}, {1, 1}, {1, 1}, {1, 1}};
  EXPECT_TRUE(uses({1, 14, 14, 32}, {3, 3, 32, 32}, same));
  // Large weights must serve 24 patches or more: 49 of them do, 16 do not.
  EXPECT_TRUE(uses({1, 14, 14, 512}, {3, 3, 512, 512}, same));
  EXPECT_FALSE(uses({1, 7, 7, 512}, {3, 3, 512, 512}, same));
  EXPECT_FALSE(uses({1, 14, 14, 16}, {3, 3, 16, 32}, same));
  EXPECT_FALSE(uses({1, 14, 14, 36}, {3, 3, 36, 32}, same));
  EXPECT_FALSE(uses({1, 4, 4, 32}, {3, 3, 32, 32}, same));
  EXPECT_FALSE(uses({1, 1, 64, 32}, {3, 3, 32, 32}, same));
  EXPECT_FALSE(uses({1, 14, 14, 32}, {3, 3, 32, 32}, same, element_type::f16));
  EXPECT_FALSE(uses({1, 14, 14, 32}, {3, 3, 32, 32}, {{2, 2}, {1, 1}, {1, 1}, {1, 1}}));
  EXPECT_FALSE(uses({1, 14, 14, 32}, {3, 3, 32, 32}, {{1, 1}, {2, 2}, {2, 2}, {2, 2}}));
  EXPECT_FALSE(uses({1, 14, 14, 32}, {5, 5, 32, 32}, {{1, 1}, {1, 1}, {2, 2}, {2, 2}}));
}

// Pixels that are a page apart share a set of the first-level cache, so a tile has at most as many rows as a set has
// lines.
TEST(convolution_tiles, have_few_rows_where_pixels_are_pages_apart) {
  const convolution op{{1, 1}, {1, 1}, {0, 0}, {0, 0}};
  auto object = [&](std::int64_t channels, const kernel_configuration& configuration) {
    return compile_fusion(*convolution_fusion({1, 14, 14, channels}, {1, 1, channels, 64}, op), v4_row(), configuration)
        .object;
  };
  const kernel_configuration few_rows{{"tile_m", 5}, {"tile_n", 64}}, many_rows{{"tile_m", 14}, {"tile_n", 32}};
  EXPECT_EQ(object(1024, {}), object(1024, few_rows));
  EXPECT_EQ(object(1008, {}), object(1008, many_rows));
}

TEST(convolution_tiles, agree_in_every_configuration) {
  const convolution op{{1, 1}, {1, 1}, {1, 1}, {1, 1}};
  for (std::int64_t m : {3, 6, 14, 20})
    for (std::int64_t n : {16, 48}) {
      expect_matches(*convolution_fusion({1, 9, 17, 16}, {3, 3, 16, 50}, op, element_type::f32, epilogue::bias_relu),
                     1e-6, {{"tile_m", m}, {"tile_n", n}, {"unroll", 2}});
      if (HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace kiln::test
