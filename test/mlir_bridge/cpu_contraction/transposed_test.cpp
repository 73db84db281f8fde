#include <gtest/gtest.h>

#include "fusions.hpp"
#include "harness.hpp"

namespace kiln::test {
namespace {

struct transposed_case {
  std::string name;
  dims_of image, weights;  // weights [window..., features of a group, channels]
  transposed_convolution op;
};

const transposed_case transposed_cases[] = {
    {"double", {1, 7, 9, 16}, {2, 2, 24, 16}, {{2, 2}, {1, 1}, {0, 0}, {0, 0}, {0, 0}}},
    {"overlapping", {1, 7, 8, 17}, {4, 4, 33, 17}, {{2, 2}, {1, 1}, {1, 1}, {1, 1}, {0, 0}}},
    {"odd_window", {2, 5, 6, 8}, {3, 3, 9, 8}, {{2, 2}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"unit_stride", {1, 9, 15, 16}, {3, 3, 16, 16}, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}}},
    {"gaps", {1, 4, 5, 8}, {2, 2, 5, 8}, {{3, 4}, {1, 1}, {0, 0}, {0, 0}, {1, 2}}},
    {"dilated", {1, 6, 7, 12}, {3, 3, 10, 12}, {{1, 1}, {2, 2}, {2, 2}, {2, 2}, {0, 0}}},
    {"dilated_strided", {1, 6, 7, 12}, {3, 2, 10, 12}, {{2, 4}, {3, 2}, {1, 0}, {2, 1}, {1, 0}}},
    {"common_factor", {1, 5, 5, 8}, {3, 3, 8, 8}, {{4, 6}, {6, 4}, {0, 3}, {1, 0}, {0, 0}}},
    {"uneven_pads", {1, 6, 5, 8}, {5, 4, 7, 8}, {{2, 3}, {1, 1}, {3, 0}, {1, 2}, {0, 1}}},
    {"grouped", {1, 6, 7, 12}, {3, 3, 5, 12}, {{2, 2}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, 3}},
    {"depthwise", {1, 6, 7, 10}, {4, 4, 1, 10}, {{2, 2}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, 10}},
    {"line", {2, 20, 16}, {5, 17, 16}, {{3}, {1}, {1}, {0}, {0}}},
    {"volume", {1, 3, 4, 5, 8}, {2, 3, 2, 6, 8}, {{2, 1, 2}, {1, 1, 1}, {0, 1, 0}, {0, 1, 0}, {0, 0, 1}}},
    {"few_channels", {1, 9, 14, 3}, {4, 4, 6, 3}, {{2, 2}, {1, 1}, {1, 1}, {1, 1}, {0, 0}}},
};

class transposed_convolutions : public testing::TestWithParam<transposed_case> {};

TEST_P(transposed_convolutions, agree_in_f32) {
  expect_matches(*convolution_fusion(GetParam().image, GetParam().weights, GetParam().op), 1e-6);
}
TEST_P(transposed_convolutions, agree_in_f16) {
  expect_matches(*convolution_fusion(GetParam().image, GetParam().weights, GetParam().op, element_type::f16), 2e-3);
}
TEST_P(transposed_convolutions, take_an_epilogue) {
  expect_matches(*convolution_fusion(GetParam().image, GetParam().weights, GetParam().op, element_type::f32,
                                     epilogue::bias_relu_residual),
                 1e-6);
}

INSTANTIATE_TEST_SUITE_P(All, transposed_convolutions, testing::ValuesIn(transposed_cases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kiln::test
