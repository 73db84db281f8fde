// Contractions in the matrix registers of AMX: sizes that fill tiles and sizes that do not, all kinds of factors. On
// processors without AMX its instructions are emulated, one by one, in the object as it would run there.
#include <array>
#include <limits>
#include <optional>

#include "amx_emulator.hpp"
#include "harness.hpp"
#include "mlir_bridge/cpu/contraction/matrix_tile.hpp"
#include "mlir_bridge/targets/target_table.hpp"
#include "runtime/host_features.hpp"

namespace kiln::test {
namespace {

using in = const std::vector<value>&;
using element_type::bf16, element_type::f32, element_type::i32, element_type::i8, element_type::u8;

const target_row& amx_row() { return *find_row("sapphirerapids"); }

class amx : public testing::Test {
 protected:
  void SetUp() override {
    if (!runs_on_host(*find_cpu_row("zen4"))) GTEST_SKIP() << "this processor has no AVX512-BF16";
    if (!host_has_feature("amx-tile")) emulator_.emplace();  // the question asks Linux for the registers
  }

  // Compares with the reference and between divisions of the grid. `matrices`: whether matrix registers must be used.
  void check_here(const module& fusion, std::span<const literal> inputs, tolerance allowed,
                  const kernel_configuration& configuration = {}, bool matrices = true) {
    const auto expected = evaluate(fusion, inputs);
    const std::int64_t before = amx_emulator::products();
    const loaded_kernel kernel(fusion, amx_row(), configuration);
    const auto whole = kernel.run(inputs);
    for (std::size_t i = 0; i < whole.size(); ++i) expect_close(whole[i], expected[i], allowed, fusion.str());
    const auto split = kernel.run(inputs, 5);
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_TRUE(split[i] == whole[i]) << fusion.str();
    if (emulator_) {
      EXPECT_EQ(amx_emulator::products() > before, matrices) << fusion.str();
    }
    EXPECT_FALSE(amx_emulator::is_configured()) << fusion.str();
  }

  void check_random(const module& fusion, tolerance allowed, const kernel_configuration& configuration = {},
                    bool matrices = true) {
    std::mt19937 random(3);
    std::vector<literal> inputs;
    for (value p : fusion.parameters()) inputs.push_back(random_literal(p.type(), random, 1));
    check_here(fusion, inputs, allowed, configuration, matrices);
  }

 private:
  std::optional<amx_emulator> emulator_;
};

constexpr tolerance of_sums{1e-5, 2e-4};

std::unique_ptr<module> dot_of(const shape& a, const shape& b, const dot& op) {
  return fusion({a, b}, [&](module& f, in p) { return std::vector<value>{f.add(op, {p[0], p[1]})}; });
}

TEST_F(amx, is_found_by_the_features_of_a_row) {
  EXPECT_EQ(cpu::find_lane_products(amx_row(), bf16, bf16)->matrix, "tdpbf16ps");
  EXPECT_EQ(cpu::find_lane_products(amx_row(), u8, i8)->matrix, "tdpbusd");
  EXPECT_EQ(cpu::find_lane_products(amx_row(), i8, i8)->matrix, "tdpbssd");
  EXPECT_EQ(cpu::find_lane_products(amx_row(), i8, u8)->matrix, "tdpbsud");
  EXPECT_EQ(cpu::find_lane_products(amx_row(), u8, u8)->matrix, "tdpbuud");
  EXPECT_EQ(cpu::find_lane_products(*find_row("zen4"), u8, i8)->matrix, "");
}

TEST_F(amx, dot_of_bf16) {
  for (std::int64_t m : {5, 16, 17, 31, 33, 56, 70})
    for (std::int64_t n : {16, 37, 64, 100})
      for (std::int64_t k : {32, 64, 90, 160}) {
        SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k));
        check_random(*dot_of(typed(bf16, {m, k}), typed(bf16, {k, n}), {.type = f32}), of_sums);
      }
}

TEST_F(amx, dot_of_bytes_of_every_sign) {
  for (element_type left : {u8, i8})
    for (element_type right : {u8, i8})
      for (std::int64_t m : {13, 49})
        for (std::int64_t k : {64, 250}) {
          SCOPED_TRACE(std::string(name(left)) + " x " + std::string(name(right)));
          check_random(*dot_of(typed(left, {m, k}), typed(right, {k, 37}), {.type = i32}), {});
        }
}

TEST_F(amx, transposed_and_batched_dot) {
  for (bool a : {false, true})
    for (bool b : {false, true}) {
      const auto left = a ? std::vector<dim>{3, 64, 50} : std::vector<dim>{3, 50, 64},
                 right = b ? std::vector<dim>{3, 35, 64} : std::vector<dim>{3, 64, 35};
      check_random(*dot_of(typed(bf16, left), typed(bf16, right), {.transpose_a = a, .transpose_b = b, .type = f32}),
                   of_sums);
      check_random(*dot_of(typed(u8, left), typed(i8, right), {.transpose_a = a, .transpose_b = b, .type = i32}), {});
    }
}

TEST_F(amx, vectors_where_blocks_would_be_empty) {
  check_random(*dot_of(typed(bf16, {4, 64}), typed(bf16, {64, 64}), {.type = f32}), of_sums, {}, false);
  check_random(*dot_of(typed(bf16, {64, 64}), typed(bf16, {64, 9}), {.type = f32}), of_sums, {}, false);
  check_random(*dot_of(typed(bf16, {64, 20}), typed(bf16, {20, 64}), {.type = f32}), of_sums, {}, false);
  check_random(*dot_of(typed(bf16, {64, 64}), typed(bf16, {64, 64}), {.type = f32}), of_sums, {{"matrix", 0}}, false);
}

// Products of few rows read the panels of products with many.
TEST_F(amx, vectors_read_the_panels_of_matrices) {
  check_random(*dot_of(typed(bf16, {2, 90}), typed(bf16, {90, 70}), {.type = f32}), of_sums, {{"shared_panels", 16}},
               false);
  check_random(*dot_of(typed(bf16, {8, 90}), typed(bf16, {90, 70}), {.type = f32}), of_sums, {{"shared_panels", 16}});
}

struct image_case {
  std::int64_t channels, features, groups, window, stride, dilation, pad, width;
};

// Pixels of an output line, whose products of u8 and i8 VNNI computes if there are few.
std::int64_t line_of(const image_case& c) {
  return (c.width + 2 * c.pad - c.dilation * (c.window - 1) - 1) / c.stride + 1;
}

TEST_F(amx, convolutions) {
  for (image_case c : {image_case{64, 64, 1, 3, 1, 1, 1, 7}, image_case{64, 33, 1, 1, 1, 1, 0, 15},
                       image_case{100, 20, 1, 3, 2, 1, 1, 37}, image_case{64, 48, 1, 3, 1, 2, 2, 20},
                       image_case{128, 32, 2, 3, 1, 1, 1, 40}, image_case{64, 16, 1, 5, 1, 1, 0, 24},
                       image_case{64, 16, 1, 1, 2, 1, 0, 33}, image_case{64, 20, 1, 7, 1, 1, 6, 9}})
    for (auto [left, right] : {std::pair{bf16, bf16}, {u8, i8}, {i8, i8}}) {
      SCOPED_TRACE(std::to_string(c.channels) + " -> " + std::to_string(c.features) + " window " +
                   std::to_string(c.window) + " of " + std::string(name(left)));
      check_random(
          *fusion({typed(left, {2, 5 + c.window, c.width, c.channels}),
                   typed(right, {c.window, c.window, c.channels / c.groups, c.features})},
                  [&](module& f, in p) {
                    const convolution op{
                        {c.stride, c.stride},        {c.dilation, c.dilation}, {c.pad, c.pad}, {c.pad, c.pad}, c.groups,
                        tensor_layout::channels_last};
                    return std::vector<value>{f.add(op, {p[0], p[1]})};
                  }),
          left == bf16 ? tolerance{1e-2, 0.2} : tolerance{}, {}, left != u8 || line_of(c) >= 8);
    }
}

// Rows that a partly filled tile lacks, and zeros behind the depth, must not reach the others.
TEST_F(amx, keeps_infinities_and_nan_in_their_rows) {
  constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (std::int64_t m : {7, 35, 64})
    for (std::int64_t k : {64, 90}) {
      const std::int64_t n = 21;
      std::vector<double> left(static_cast<std::size_t>(m * k)), right(static_cast<std::size_t>(k * n));
      for (std::size_t i = 0; i < left.size(); ++i) left[i] = 1 + static_cast<double>(i % 5);
      for (std::size_t i = 0; i < right.size(); ++i) right[i] = 2 - static_cast<double>(i % 3);
      left[0] = infinity, left[static_cast<std::size_t>(k)] = nan, left.back() = -infinity;
      const auto kernel = dot_of(typed(bf16, {m, k}), typed(bf16, {k, n}), {.type = f32});
      check_here(*kernel,
                 std::vector{literal::from_doubles(typed(bf16, {m, k}), left),
                             literal::from_doubles(typed(bf16, {k, n}), right)},
                 of_sums);
    }
}

TEST_F(amx, takes_epilogues) {
  for (std::int64_t m : {33, 64}) {
    const auto kernel = fusion({typed(bf16, {m, 64}), typed(bf16, {64, 40}), typed(bf16, {40})}, [&](module& f, in p) {
      value x = f.add(dot{.type = bf16}, {p[0], p[1]});
      x = f.add(elementwise{scalar_function::add}, {x, f.add(broadcast{{m, 40}}, {p[2]})});
      return std::vector<value>{f.add(elementwise{scalar_function::sigmoid}, {x})};
    });
    check_random(*kernel, {1e-2, 1e-2});
  }
}

}  // namespace
}  // namespace kiln::test
