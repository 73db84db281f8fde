// Products and convolutions of 8-bit integers: all combinations of signedness, odd sizes, rows and columns that do not
// fill tiles, for processors with and without VNNI.
#include <array>
#include <cmath>
#include <limits>

#include "harness.hpp"
#include "mlir_bridge/cpu/contraction/lane_product.hpp"

namespace kiln::test {
namespace {

using in = const std::vector<value>&;
using element_type::i32, element_type::i8, element_type::u8;

// Random values of the type that include its extremes.
literal any_bytes(const shape& s, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> numbers(static_cast<std::size_t>(s.element_count()));
  for (double& x : numbers) {
    const auto drawn = static_cast<double>(random() % 3 == 0 ? random() % 2 * 255 : random() % 256);
    x = drawn - (s.type == i8 ? 128 : 0);
  }
  return literal::from_doubles(s, numbers);
}

void check_bytes(const module& m) {
  std::vector<literal> inputs;
  for (value v : m.parameters()) inputs.push_back(any_bytes(v.type(), static_cast<unsigned>(inputs.size()) + 3));
  check(m, inputs);
}

struct factors {
  element_type left, right;
};
constexpr std::array all_factors{factors{u8, i8}, factors{i8, i8}, factors{u8, u8}, factors{i8, u8}};

TEST(byte_contraction, dot_of_every_sign_and_size) {
  for (auto [left, right] : all_factors)
    for (std::int64_t m : {1, 49})
      for (std::int64_t n : {6, 37})
        for (std::int64_t k : {4, 27}) {
          SCOPED_TRACE(std::string(name(left)) + " x " + std::string(name(right)) + " " + std::to_string(m) + "x" +
                       std::to_string(n) + "x" + std::to_string(k));
          check_bytes(*fusion({typed(left, {m, k}), typed(right, {k, n})}, [&](module& f, in p) {
            return std::vector<value>{f.add(dot{.type = i32}, {p[0], p[1]})};
          }));
        }
}

TEST(byte_contraction, transposed_and_batched_dot) {
  for (bool a : {false, true})
    for (bool b : {false, true}) {
      SCOPED_TRACE(a * 2 + b);
      for (std::int64_t batch : {1, 3})
        check_bytes(*fusion({typed(u8, a ? std::vector<dim>{batch, 21, 50} : std::vector<dim>{batch, 50, 21}),
                             typed(i8, b ? std::vector<dim>{batch, 19, 21} : std::vector<dim>{batch, 21, 19})},
                            [&](module& f, in p) { return std::vector<value>{f.add(dot{a, b, i32}, {p[0], p[1]})}; }));
    }
}

struct image_case {
  std::int64_t channels, features, groups, window, stride, dilation, pad;
};

TEST(byte_contraction, convolutions) {
  for (image_case c :
       {image_case{3, 8, 1, 7, 2, 1, 3}, image_case{16, 20, 1, 1, 1, 1, 0}, image_case{20, 33, 1, 3, 1, 1, 1},
        image_case{12, 18, 2, 3, 2, 1, 1}, image_case{18, 12, 6, 3, 1, 2, 2}, image_case{8, 8, 8, 3, 1, 1, 1},
        image_case{64, 16, 1, 3, 1, 1, 1}, image_case{10, 7, 1, 1, 2, 1, 0}, image_case{6, 12, 6, 3, 1, 1, 1}})
    for (auto [left, right] : {factors{u8, i8}, factors{i8, i8}}) {
      SCOPED_TRACE(std::to_string(c.channels) + " -> " + std::to_string(c.features) + " window " +
                   std::to_string(c.window) + std::string(name(left)));
      check_bytes(*fusion(
          {typed(left, {2, 9, 15, c.channels}), typed(right, {c.window, c.window, c.channels / c.groups, c.features})},
          [&](module& f, in p) {
            const convolution op{
                {c.stride, c.stride},        {c.dilation, c.dilation}, {c.pad, c.pad}, {c.pad, c.pad}, c.groups,
                tensor_layout::channels_last};
            return std::vector<value>{f.add(op, {p[0], p[1]})};
          }));
    }
}

// The operations that QuantizeLinear adds after the sums.
TEST(byte_contraction, requantizing_epilogue) {
  for (element_type type : {u8, i8}) {
    auto m = fusion({typed(u8, {1, 7, 9, 12}), typed(i8, {1, 1, 12, 40}), f32({40})}, [&](module& f, in p) {
      const convolution op{{1, 1}, {1, 1}, {0, 0}, {0, 0}, 1, tensor_layout::channels_last};
      const std::vector<dim> dims{1, 7, 9, 40};
      auto apply = [&](scalar_function function, value a, value b) { return f.add(elementwise{function}, {a, b}); };
      auto number = [&](double x) {
        return f.add(broadcast{dims}, {f.add_constant(literal::scalar(element_type::f32, x))});
      };
      value x = f.add(convert{element_type::f32}, {f.add(op, {p[0], p[1]})});
      x = apply(scalar_function::mul, x, f.add(broadcast{dims}, {p[2]}));
      x = apply(scalar_function::add, f.add(elementwise{scalar_function::round}, {x}), number(3));
      const double low = type == u8 ? 0 : -128;
      x = f.add(elementwise{scalar_function::clamp}, {x, number(low), number(low + 255)});
      return std::vector<value>{f.add(convert{type}, {x})};
    });
    std::vector<literal> inputs{any_bytes(typed(u8, {1, 7, 9, 12}), 1), any_bytes(typed(i8, {1, 1, 12, 40}), 2)};
    std::vector<double> scales;
    for (int i = 0; i < 40; ++i)
      scales.push_back(i == 7 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1, -i));
    inputs.push_back(literal::from_doubles(f32({40}), scales));
    check(*m, inputs);
  }
}

TEST(byte_contraction, finds_vnni) {
  target_row row{"x", target_family::cpu, "x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+avx512vnni", 512, 32};
  EXPECT_TRUE(cpu::find_lane_products(row, u8, i8)->vnni);
  EXPECT_FALSE(cpu::find_lane_products(row, i8, i8)->vnni);
  EXPECT_FALSE(cpu::find_lane_products(row, u8, i32));
  row.features = "+avx512f,-avx512vnni,+avxvnni";
  EXPECT_FALSE(cpu::find_lane_products(row, u8, i8)->vnni);
}

TEST(byte_contraction, finds_the_instructions_of_arm) {
  target_row row{"x", target_family::cpu, "aarch64-unknown-linux-gnu", "generic", "+neon", 128, 32};
  EXPECT_EQ(cpu::find_lane_products(row, u8, i8)->arm, "");
  row.features = "+dotprod";
  EXPECT_EQ(cpu::find_lane_products(row, i8, i8)->arm, "sdot");
  EXPECT_EQ(cpu::find_lane_products(row, u8, u8)->arm, "udot");
  EXPECT_EQ(cpu::find_lane_products(row, u8, i8)->arm, "");
  row.features = "+dotprod,+i8mm";
  EXPECT_EQ(cpu::find_lane_products(row, u8, i8)->arm, "usdot");
  EXPECT_EQ(cpu::find_lane_products(row, i8, u8)->arm, "");
}

}  // namespace
}  // namespace kiln::test
