#include "session/block_sizes.hpp"

#include <gmock/gmock.h>

namespace kiln::testing {
namespace {

using list = std::vector<std::int64_t>;

row_traffic product_of(std::int64_t k, std::int64_t n, bool for_all_sizes = true) {
  return {.input_bytes = 4 * k, .output_bytes = 4 * n, .shared_bytes = 4 * k * n, .for_all_sizes = for_all_sizes};
}

// 3x3, as many channels as results, square images.
row_traffic convolution_of(std::int64_t channels, std::int64_t side) {
  const std::int64_t image = side * side * channels * 4;
  return {
      .input_bytes = image, .output_bytes = image, .shared_bytes = 9 * channels * channels * 4, .for_all_sizes = true};
}

// 4-bit weights with 64 columns for 64 inputs.
constexpr row_traffic unpacked{
    .input_bytes = 256, .output_bytes = 256, .shared_bytes = 2304, .for_all_sizes = true, .unpacks_weights = true};

list costs(const row_traffic& traffic) {
  list result;
  for (std::int64_t rows : block_sizes(traffic)) result.push_back(block_cost(traffic, rows));
  return result;
}

TEST(block_sizes, heavy_rows_are_blocks_of_their_own) {
  auto sizes = [](std::int64_t row, std::int64_t shared, bool for_all) {
    return block_sizes(
        {.input_bytes = row / 2, .output_bytes = row / 2, .shared_bytes = shared, .for_all_sizes = for_all});
  };
  EXPECT_EQ(sizes(1 << 20, 0, true), (list{1}));
  EXPECT_EQ(sizes(8192, 8192, true), (list{16, 1}));
  EXPECT_EQ(sizes(8192, 1 << 18, true), (list{16, 4, 1}));
  EXPECT_EQ(sizes(4, 0, true), (list{256, 16, 1}));
  EXPECT_EQ(sizes(4, 0, false), (list{16, 1}));
}

TEST(block_sizes, products_with_large_weights_have_blocks_of_many_rows) {
  EXPECT_EQ(block_sizes(product_of(288, 32000)), (list{64, 16, 4, 1}));
  EXPECT_EQ(block_sizes(product_of(768, 3072)), (list{64, 16, 4, 1}));
  EXPECT_EQ(block_sizes(product_of(768, 3072, false)), (list{1}));
  // A convolution uses each weight for many pixels.
  EXPECT_EQ(block_sizes(convolution_of(256, 14)), (list{1}));
}

// A decoder's batch of 2 to 4 is one block of small weights, too.
TEST(block_sizes, products_with_small_weights_have_blocks_of_four_rows) {
  EXPECT_EQ(block_sizes(product_of(64, 64)), (list{64, 4, 1}));
  EXPECT_EQ(block_sizes(product_of(64, 192)), (list{64, 4, 1}));
  EXPECT_EQ(block_sizes(product_of(64, 64, false)), (list{16, 1}));
}

// Four blocks of 16 rows would unpack the weights of 64 rows four times.
TEST(block_sizes, products_that_unpack_weights_have_blocks_of_many_rows) {
  EXPECT_EQ(block_sizes(unpacked), (list{512, 64, 8, 1}));
}

TEST(block_cost, weights_from_memory_cost_as_much_as_some_rows) {
  EXPECT_EQ(costs(product_of(768, 3072)), (list{64, 16, 10, 10}));
  EXPECT_EQ(costs(product_of(64, 192)), (list{65, 5, 2}));
}

TEST(block_cost, few_rows_of_unpacked_weights_take_longer) { EXPECT_EQ(costs(unpacked), (list{1536, 192, 60, 8})); }

// With 49 pixels the weights of an image are used 16 times.
TEST(block_cost, a_convolution_uses_its_weights_more_often) {
  EXPECT_EQ(block_cost(convolution_of(512, 7), 1), 16);
  EXPECT_EQ(block_cost(convolution_of(512, 7), 4), 64);
}

TEST(block_cost, kernels_without_weights_have_none) {
  EXPECT_EQ(block_cost({.input_bytes = 4096, .output_bytes = 4096, .shared_bytes = 4096}, 16), 0);
}

}  // namespace
}  // namespace kiln::testing
