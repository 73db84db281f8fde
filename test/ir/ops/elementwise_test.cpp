#include <limits>

#include "test/ir/ops/support.hpp"

namespace kiln::testing {
namespace {

using f = scalar_function;
constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();

literal compute(scalar_function function, const std::vector<literal>& inputs) {
  return run(elementwise{function}, inputs);
}

literal wide(std::int64_t a, std::int64_t b, std::int64_t c) { return indices({3}, {a, b, c}); }

TEST(elementwise, every_function_of_a_float_against_its_formula) {
  struct row {
    scalar_function function;
    double (*formula)(double, double);
  };
  const row rows[] = {
      {f::add, [](double a, double b) { return a + b; }},
      {f::sub, [](double a, double b) { return a - b; }},
      {f::mul, [](double a, double b) { return a * b; }},
      {f::div, [](double a, double b) { return a / b; }},
      {f::pow, [](double a, double b) { return std::pow(a, b); }},
      {f::min, [](double a, double b) { return std::fmin(a, b); }},
      {f::max, [](double a, double b) { return std::fmax(a, b); }},
      {f::mod, [](double a, double b) { return a - b * std::floor(a / b); }},
      {f::fmod, [](double a, double b) { return a - b * std::trunc(a / b); }},
      {f::prelu, [](double a, double b) { return a < 0 ? a * b : a; }},
      {f::less, [](double a, double b) { return double(a < b); }},
      {f::less_equal, [](double a, double b) { return double(a <= b); }},
      {f::greater, [](double a, double b) { return double(a > b); }},
      {f::greater_equal, [](double a, double b) { return double(a >= b); }},
      {f::equal, [](double a, double b) { return double(a == b); }},
      {f::abs, [](double a, double) { return std::fabs(a); }},
      {f::neg, [](double a, double) { return -a; }},
      {f::sign, [](double a, double) { return double(a > 0) - double(a < 0); }},
      {f::exp, [](double a, double) { return std::exp(a); }},
      {f::log, [](double a, double) { return std::log(a); }},
      {f::sqrt, [](double a, double) { return std::sqrt(a); }},
      {f::rsqrt, [](double a, double) { return std::pow(a, -0.5); }},
      {f::reciprocal, [](double a, double) { return 1 / a; }},
      {f::erf, [](double a, double) { return 1 - std::erfc(a); }},
      {f::tanh, [](double a, double) { return 1 - 2 / (std::exp(2 * a) + 1); }},
      {f::sigmoid, [](double a, double) { return std::exp(a) / (1 + std::exp(a)); }},
      {f::sin, [](double a, double) { return std::cos(a - M_PI / 2); }},
      {f::cos, [](double a, double) { return std::sin(a + M_PI / 2); }},
      {f::tan, [](double a, double) { return std::sin(a) / std::cos(a); }},
      {f::asin, [](double a, double) { return M_PI / 2 - std::acos(a); }},
      {f::acos, [](double a, double) { return M_PI / 2 - std::asin(a); }},
      {f::atan, [](double a, double) { return std::atan2(a, 1); }},
      {f::sinh, [](double a, double) { return (std::exp(a) - std::exp(-a)) / 2; }},
      {f::cosh, [](double a, double) { return (std::exp(a) + std::exp(-a)) / 2; }},
      {f::asinh, [](double a, double) { return std::copysign(std::log(std::fabs(a) + std::sqrt(a * a + 1)), a); }},
      {f::acosh, [](double a, double) { return std::log(a + std::sqrt(a * a - 1)); }},
      {f::atanh, [](double a, double) { return std::log((1 + a) / (1 - a)) / 2; }},
      {f::floor, [](double a, double) { return std::floor(a); }},
      {f::ceil, [](double a, double) { return std::ceil(a); }},
      {f::relu, [](double a, double) { return a > 0 ? a : 0; }},
  };
  for (const row& r : rows)
    for (element_type type : {element_type::f32, element_type::f64, element_type::f16, element_type::bf16}) {
      literal a = pattern({3, 15}, 1, type), b = pattern({3, 15}, 4, type);
      bool binary = kiln::row(r.function).arity == 2;
      auto result = compute(r.function, binary ? std::vector<literal>{a, b} : std::vector<literal>{a});
      double unit = type == element_type::f64   ? 1e-13
                    : type == element_type::f32 ? 2e-7
                    : type == element_type::f16 ? 5e-4
                                                : 4e-3;
      for (std::int64_t i = 0; i < 45; ++i) {
        double expected = r.formula(a.at(i), b.at(i)), actual = result.at(i);
        if (std::isnan(expected) || std::isinf(expected))
          EXPECT_TRUE(std::isnan(expected) ? std::isnan(actual) : actual == expected)
              << enum_name(r.function) << " " << a.at(i) << " " << actual;
        else
          EXPECT_NEAR(actual, expected, unit * std::max(1.0, std::fabs(expected)))
              << enum_name(r.function) << "(" << a.at(i) << ", " << b.at(i) << ") in " << name(type);
      }
    }
}

TEST(elementwise, integers_are_exact_and_wrap) {
  std::int64_t big = (std::int64_t(1) << 53) + 1, top = INT64_MAX, bottom = INT64_MIN;
  expect_integers(compute(f::add, {wide(big, top, 5), wide(2, 1, -7)}), {3}, {big + 2, bottom, -2});
  expect_integers(compute(f::mul, {wide(big, bottom, -3), wide(1, -1, 7)}), {3}, {big, bottom, -21});
  expect_integers(compute(f::div, {wide(-7, bottom, 7), wide(2, -1, 0)}), {3}, {-3, bottom, 0});
  expect_integers(compute(f::neg, {wide(big, bottom, 0)}), {3}, {-big, bottom, 0});
  expect_integers(compute(f::abs, {wide(-big, 4, bottom)}), {3}, {big, 4, bottom});
  expect_integers(compute(f::pow, {wide(3, -2, 2), wide(39, 3, -1)}), {3}, {4052555153018976267, -8, 0});
  expect_integers(compute(f::max, {wide(big, -1, 3), wide(big - 1, 2, 3)}), {3}, {big, 2, 3});
  expect_values(compute(f::less, {wide(big - 1, 5, 3), wide(big, 5, 2)}), {3}, {1, 0, 0});
  auto i8 = [](std::vector<double> v) { return tensor(element_type::i8, {3}, v); };
  expect_integers(compute(f::add, {i8({127, -128, 3}), i8({1, -1, 4})}), {3}, {-128, 127, 7});
  auto u64 = literal::of<std::uint64_t>(shape_of(element_type::u64, {2}), {UINT64_MAX, 1});
  EXPECT_EQ(compute(f::div, {u64, literal::of<std::uint64_t>(shape_of(element_type::u64, {2}), {2, 3})})
                .as<std::uint64_t>()[0],
            UINT64_MAX / 2);
  EXPECT_EQ(compute(f::greater, {u64, literal::of<std::uint64_t>(shape_of(element_type::u64, {2}), {1, 3})}).to_int64(),
            (std::vector<std::int64_t>{1, 0}));
}

TEST(elementwise, remainders_and_shifts) {
  literal a = tensor(element_type::i32, {5}, {7, -7, 7, -7, 6}), b = tensor(element_type::i32, {5}, {3, 3, -3, -3, -3});
  expect_integers(compute(f::mod, {a, b}), {5}, {1, 2, -2, -1, 0});  // onnxruntime, Mod with fmod=0
  expect_integers(compute(f::fmod, {a, b}), {5}, {1, -1, 1, -1, 0});
  literal zero = tensor(element_type::i32, {5}, {0, 0, 0, 0, 0});
  expect_integers(compute(f::mod, {a, zero}), {5}, {0, 0, 0, 0, 0});
  auto u8 = [](std::vector<double> v) { return tensor(element_type::u8, {3}, v); };
  expect_integers(compute(f::shift_left, {u8({3, 255, 1}), u8({1, 4, 8})}), {3}, {6, 240, 0});
  expect_integers(compute(f::shift_right, {u8({129, 255, 1}), u8({7, 4, 200})}), {3}, {1, 15, 0});
  expect_integers(compute(f::bit_and, {u8({12, 255, 1}), u8({10, 4, 2})}), {3}, {8, 4, 0});
  expect_integers(compute(f::bit_or, {u8({12, 255, 1}), u8({10, 4, 2})}), {3}, {14, 255, 3});
  expect_integers(compute(f::bit_xor, {u8({12, 255, 1}), u8({10, 4, 2})}), {3}, {6, 251, 3});
  expect_integers(compute(f::bit_not, {u8({12, 255, 0})}), {3}, {243, 0, 255});
}

TEST(elementwise, nan_and_infinity_survive) {
  literal x = tensor({5}, {nan, inf, -inf, -0.0, 2}), one = tensor({5}, {1, 1, 1, 1, nan});
  expect_values(compute(f::max, {x, one}), {5}, {nan, inf, 1, 1, nan});
  expect_values(compute(f::min, {x, one}), {5}, {nan, 1, -inf, 0, nan});
  expect_values(compute(f::relu, {x}), {5}, {nan, inf, 0, 0, 2});
  expect_values(compute(f::sign, {x}), {5}, {nan, 1, -1, 0, 1});
  expect_values(compute(f::is_nan, {x}), {5}, {1, 0, 0, 0, 0});
  expect_values(compute(f::is_inf, {x}), {5}, {0, 1, 1, 0, 0});
  expect_values(compute(f::sigmoid, {x}), {5}, {nan, 1, 0, 0.5, 1 / (1 + std::exp(-2.0))}, 1e-7);
  expect_values(compute(f::equal, {x, x}), {5}, {0, 1, 1, 1, 1});
  literal low = tensor({5}, {0, 0, 0, 0, 3}), high = tensor({5}, {1, 1, 1, 1, 1});
  expect_values(compute(f::clamp, {x, low, high}), {5}, {nan, 1, 0, 0, 1});
}

TEST(elementwise, rounding_is_half_to_even) {
  expect_values(compute(f::round, {tensor({6}, {0.5, 1.5, 2.5, -0.5, -1.5, 2.6})}), {6}, {0, 2, 2, 0, -2, 3});
}

TEST(elementwise, bool_functions_and_where) {
  literal a = tensor(element_type::boolean, {4}, {0, 0, 1, 1}), b = tensor(element_type::boolean, {4}, {0, 1, 0, 1});
  expect_values(compute(f::logical_and, {a, b}), {4}, {0, 0, 0, 1});
  expect_values(compute(f::logical_or, {a, b}), {4}, {0, 1, 1, 1});
  expect_values(compute(f::logical_xor, {a, b}), {4}, {0, 1, 1, 0});
  expect_values(compute(f::logical_not, {a}), {4}, {1, 1, 0, 0});
  std::int64_t big = (std::int64_t(1) << 60) + 1;
  expect_integers(compute(f::where, {a, indices({4}, {1, 2, 3, big}), indices({4}, {5, -big, 7, 8})}), {4},
                  {5, -big, 3, big});
  expect_values(compute(f::where, {a, a, b}), {4}, {0, 1, 1, 1});
}

TEST(elementwise, empty_and_scalar_tensors) {
  expect_values(compute(f::add, {tensor({0, 3}, {}), tensor({0, 3}, {})}), {0, 3}, {});
  expect_values(compute(f::exp, {tensor({}, {0})}), {}, {1});
}

TEST(elementwise, narrow_floats_round_once) {
  // 1 + 2^-11 lies halfway between two halves and goes to the even one; the f32 sum before it is exact.
  auto half = [](double v) { return tensor(element_type::f16, {}, {v}); };
  expect_values(compute(f::add, {half(1), half(0x1p-11)}), {}, {1});
  expect_values(compute(f::add, {half(1 + 0x1p-10), half(0x1p-11)}), {}, {1 + 0x1p-9});
  expect_values(compute(f::mul, {tensor(element_type::f8e4m3, {}, {1.5}), tensor(element_type::f8e4m3, {}, {1.5})}), {},
                {2.25});
}

TEST(elementwise, narrow_floats_in_several_blocks) {
  literal a = pattern({7, 701}, 1, element_type::bf16), b = pattern({7, 701}, 2, element_type::bf16);
  literal sum = compute(f::add, {a, b}), less = compute(f::less, {a, b}), chosen = compute(f::where, {less, a, b});
  for (std::int64_t i = 0; i < 7 * 701; ++i) {
    ASSERT_EQ(sum.at(i), a.at(i) + b.at(i));
    ASSERT_EQ(less.at(i), a.at(i) < b.at(i));
    ASSERT_EQ(chosen.at(i), std::min(a.at(i), b.at(i)));
  }
}

TEST(elementwise, refuses_what_does_not_fit) {
  auto infer = [](scalar_function function, std::vector<shape> shapes) { return elementwise{function}.infer(shapes); };
  shape a = shape_of(element_type::f32, {2, 3}), b = shape_of(element_type::f32, {3}),
        i = shape_of(element_type::i32, {2, 3});
  expect_error(error_kind::invalid_model, "add(f32[2, 3], f32[3]): operands differ in dimensions",
               [&] { infer(f::add, {a, b}); });
  expect_error(error_kind::invalid_model, "mul(f32[2, 3], i32[2, 3]): operands differ in element type",
               [&] { infer(f::mul, {a, i}); });
  expect_error(error_kind::invalid_model, "takes 2 inputs, 1 were given", [&] { infer(f::sub, {a}); });
  expect_error(error_kind::invalid_model, "exp(i32[2, 3]): is not defined on i32", [&] { infer(f::exp, {i}); });
  expect_error(error_kind::invalid_model, "not defined on i4",
               [&] { infer(f::neg, {shape_of(element_type::i4, {4})}); });
  expect_error(error_kind::invalid_model, "condition must be bool", [&] { infer(f::where, {a, a, a}); });
  dim batch = dim::symbol("batch");
  EXPECT_EQ(infer(f::less, {{element_type::f16, {batch, 3}}, {element_type::f16, {batch, 3}}})[0].str(),
            "bool[batch, 3]");
}

TEST(convert, follows_onnx_cast) {
  literal x = tensor({6}, {1.9, -1.9, 0, nan, 300, -0.25});
  expect_integers(run(convert{element_type::i32}, {x}), {6}, {1, -1, 0, 0, 300, 0});
  expect_integers(run(convert{element_type::u8}, {x}), {6}, {1, 255, 0, 0, 44, 0});
  expect_integers(run(convert{element_type::boolean}, {x}), {6}, {1, 1, 0, 1, 1, 1});
  expect_values(run(convert{element_type::bf16}, {tensor({2}, {1 + 0x1p-8, 3.140625})}), {2}, {1, 3.140625});
  expect_values(run(convert{element_type::f16}, {tensor({2}, {65536, 0x1p-24})}), {2}, {inf, 0x1p-24});
  std::int64_t big = (std::int64_t(1) << 53) + 1;
  expect_integers(run(convert{element_type::u64}, {indices({2}, {big, -1})}), {2}, {big, -1});
  expect_integers(run(convert{element_type::i8}, {indices({2}, {big, 200})}), {2}, {1, -56});
  expect_values(run(convert{element_type::f32}, {indices({1}, {(std::int64_t(1) << 24) + 1})}), {1}, {16777216});
  expect_integers(run(convert{element_type::i64}, {tensor({2}, {1e30, -1e30})}), {2}, {INT64_MAX, INT64_MIN});
}

TEST(convert, four_bit_types_unpack_and_pack) {
  literal x = tensor(element_type::i4, {5}, {-8, 7, -1, 0, 3});
  expect_values(run(convert{element_type::f32}, {x}), {5}, {-8, 7, -1, 0, 3});
  expect_integers(run(convert{element_type::u4}, {tensor({3}, {15, 2.9, 9})}), {3}, {15, 2, 9});
  expect_integers(run(convert{element_type::u4}, {x}), {5}, {8, 7, 15, 0, 3});
}

}  // namespace
}  // namespace kiln::testing
