// Products, convolutions and attention of bf16, for processors with and without AVX512-BF16: odd sizes, rows and
// columns that do not fill tiles, denormals, infinities and NaN.
#include <algorithm>
#include <cmath>
#include <limits>

#include "harness.hpp"
#include "mlir_bridge/cpu/contraction/lane_product.hpp"
#include "mlir_bridge/targets/target_table.hpp"

namespace kiln::test {
namespace {

using in = const std::vector<value>&;
using element_type::bf16, element_type::f32;

constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

// Products of bf16 are exact in f32, so only the order of the sums differs from the reference.
constexpr tolerance of_sums{1e-5, 1e-4};

std::unique_ptr<module> dot_of(const shape& a, const shape& b, const dot& op) {
  return fusion({a, b}, [&](module& f, in p) { return std::vector<value>{f.add(op, {p[0], p[1]})}; });
}

TEST(bf16_contraction, is_found_by_the_feature_of_a_row) {
  EXPECT_EQ(cpu::find_lane_products(*find_row("zen4"), bf16, bf16)->neighbours, 2);
  EXPECT_FALSE(cpu::find_lane_products(*find_row("zen4"), f32, f32));
  EXPECT_FALSE(cpu::find_lane_products(*find_row("zen4"), bf16, f32));
  EXPECT_FALSE(cpu::find_lane_products(*find_row("x86-64-v4"), bf16, bf16));
}

TEST(bf16_contraction, dot_of_every_size) {
  for (std::int64_t m : {1, 2, 3, 5, 49})
    for (std::int64_t n : {1, 37, 130})
      for (std::int64_t k : {1, 2, 64, 101}) {
        SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k));
        check(*dot_of(typed(bf16, {m, k}), typed(bf16, {k, n}), {.type = f32}), 5, 1, of_sums);
      }
}

TEST(bf16_contraction, transposed_and_batched_dot) {
  for (bool a : {false, true})
    for (bool b : {false, true})
      for (std::int64_t m : {1, 4, 50})
        for (std::int64_t batch : {1, 3}) {
          SCOPED_TRACE(std::to_string(a * 2 + b) + " rows " + std::to_string(m) + " batch " + std::to_string(batch));
          const auto left = a ? std::vector<dim>{batch, 71, m} : std::vector<dim>{batch, m, 71},
                     right = b ? std::vector<dim>{batch, 19, 71} : std::vector<dim>{batch, 71, 19};
          check(*dot_of(typed(bf16, left), typed(bf16, right), {.transpose_a = a, .transpose_b = b, .type = f32}), 6, 1,
                of_sums);
        }
}

struct image_case {
  std::int64_t channels, features, groups, window, stride, dilation, pad;
};

TEST(bf16_contraction, convolutions) {
  for (image_case c :
       {image_case{3, 8, 1, 7, 2, 1, 3}, image_case{16, 20, 1, 1, 1, 1, 0}, image_case{20, 33, 1, 3, 1, 1, 1},
        image_case{12, 18, 2, 3, 2, 1, 1}, image_case{18, 12, 6, 3, 1, 2, 2}, image_case{8, 8, 8, 3, 1, 1, 1},
        image_case{64, 16, 1, 3, 1, 1, 1}, image_case{11, 7, 1, 1, 2, 1, 0}, image_case{6, 12, 6, 3, 1, 1, 1}}) {
    SCOPED_TRACE(std::to_string(c.channels) + " -> " + std::to_string(c.features) + " window " +
                 std::to_string(c.window));
    check(*fusion({typed(bf16, {2, 9, 15, c.channels}),
                   typed(bf16, {c.window, c.window, c.channels / c.groups, c.features})},
                  [&](module& f, in p) {
                    const convolution op{
                        {c.stride, c.stride},        {c.dilation, c.dilation}, {c.pad, c.pad}, {c.pad, c.pad}, c.groups,
                        tensor_layout::channels_last};
                    return std::vector<value>{f.add(op, {p[0], p[1]})};
                  }),
          7, 1);
  }
}

// Queries and keys whose depth does not fill lanes, and keys that do not fill panels.
TEST(bf16_contraction, attention) {
  for (std::int64_t depth : {1, 33, 64})
    for (std::int64_t keys : {1, 19, 40, 300})
      for (bool causal : {false, true}) {
        SCOPED_TRACE(std::to_string(depth) + " deep, " + std::to_string(keys) + " keys");
        const std::int64_t queries = causal ? std::min<std::int64_t>(keys, 17) : 17;
        check(
            *fusion(
                {typed(bf16, {2, 3, queries, depth}), typed(bf16, {2, 3, keys, depth}), typed(bf16, {2, 3, keys, 21})},
                [&](module& f, in p) { return std::vector<value>{f.add(attention{0.3, causal}, {p[0], p[1], p[2]})}; }),
            8, 1);
      }
}

// What is in one row, or behind the last element of one of odd length, must not reach the others.
TEST(bf16_contraction, keeps_infinities_and_nan_in_their_rows) {
  for (std::int64_t m : {1, 4, 40})
    for (std::int64_t k : {7, 64, 99})
      for (bool transposed : {false, true}) {
        SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(k) + (transposed ? " transposed" : ""));
        const std::int64_t n = 21;
        std::vector<double> left(static_cast<std::size_t>(m * k)), right(static_cast<std::size_t>(k * n));
        for (std::size_t i = 0; i < left.size(); ++i) left[i] = 1 + static_cast<double>(i % 5);
        for (std::size_t i = 0; i < right.size(); ++i) right[i] = 2 - static_cast<double>(i % 3);
        left[0] = infinity;                                  // at the beginning of the first row
        if (m > 1) left[static_cast<std::size_t>(k)] = nan;  // behind the end of the first row
        if (m > 2) left.back() = -infinity;                  // at the end of the last one
        const shape b = transposed ? typed(bf16, {n, k}) : typed(bf16, {k, n});
        check(*dot_of(typed(bf16, {m, k}), b, {.transpose_b = transposed, .type = f32}),
              std::vector{literal::from_doubles(typed(bf16, {m, k}), left), literal::from_doubles(b, right)}, of_sums);
      }
}

// AVX512-BF16 takes denormals as zeros; sums differ by less than the smallest normal number for each of them.
TEST(bf16_contraction, loses_no_more_than_denormals) {
  const double denormal = std::ldexp(1, -130), small = std::ldexp(1, -120);
  const std::int64_t m = 9, k = 33, n = 20;
  std::vector<double> left(static_cast<std::size_t>(m * k)), right(static_cast<std::size_t>(k * n), 1);
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = i % 2 ? denormal : small;
  check(
      *dot_of(typed(bf16, {m, k}), typed(bf16, {k, n}), {.type = f32}),
      std::vector{literal::from_doubles(typed(bf16, {m, k}), left), literal::from_doubles(typed(bf16, {k, n}), right)},
      tolerance{0, k * std::ldexp(1, -126)});
}

}  // namespace
}  // namespace kiln::test
