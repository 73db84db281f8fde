// Kernels without an anchor: every scalar function on every element type it takes, and every way of moving elements.
#include <algorithm>
#include <cmath>
#include <limits>

#include "harness.hpp"
#include "ir/reference/scalar_domain.hpp"

namespace kiln::test {
namespace {

constexpr auto computing_types = std::to_array<element_type>(
    {element_type::f64, element_type::f32, element_type::f16, element_type::bf16, element_type::i64, element_type::i32,
     element_type::i16, element_type::i8, element_type::u64, element_type::u32, element_type::u16, element_type::u8,
     element_type::boolean});

class every_function : public testing::TestWithParam<scalar_function> {};

TEST_P(every_function, agrees_with_the_reference_on_every_type) {
  scalar_function function = GetParam();
  for (element_type type : computing_types) {
    if (!accepts(domain_of(function), type)) continue;
    std::vector<shape> inputs(static_cast<std::size_t>(row(function).arity), typed(type, {3, 37}));
    if (function == scalar_function::where) inputs[0].type = element_type::boolean;
    auto m = fusion(inputs, [&](module& m, const std::vector<value>& p) {
      return std::vector<value>{m.add(elementwise{function}, p)};
    });
    SCOPED_TRACE(std::string(name(type)));
    check(*m, 3, 1.5);
  }
}

TEST_P(every_function, keeps_special_floats) {
  scalar_function function = GetParam();
  if (!accepts(domain_of(function), element_type::f32)) return;
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> specials{0.0f,    1.0f,  -1.0f,  0.5f, -0.5f, 2.5f, -2.5f,  88.0f,   -88.0f, 1e-30f,
                                    -1e-30f, 1e30f, -1e30f, inf,  -inf,  nan,  104.0f, -104.0f, 3.0f};
  int arity = row(function).arity;
  auto n = static_cast<std::int64_t>(specials.size());
  bool selects = function == scalar_function::where;
  std::vector<shape> inputs(static_cast<std::size_t>(arity), f32({n, n}));
  if (selects) inputs[0].type = element_type::boolean;
  auto m = fusion(inputs, [&](module& m, const std::vector<value>& p) {
    return std::vector<value>{m.add(elementwise{function}, p)};
  });
  std::vector<literal> literals;
  for (int operand = 0; operand < arity; ++operand) {
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        numbers.push_back(specials[static_cast<std::size_t>(operand == 0 ? i : operand == 1 ? j : (i + j) % n)]);
    if (inputs[static_cast<std::size_t>(operand)].type == element_type::boolean)
      for (double& x : numbers) x = x > 0;
    literals.push_back(literal::from_doubles(inputs[static_cast<std::size_t>(operand)], numbers));
  }
  check(*m, literals);
}

INSTANTIATE_TEST_SUITE_P(scalar, every_function, testing::ValuesIn([] {
                           std::vector<scalar_function> all;
                           for (std::size_t i = 0; i < scalar_function_table.size(); ++i)
                             all.push_back(static_cast<scalar_function>(i));
                           return all;
                         }()),
                         [](const auto& info) { return std::string(enum_name(info.param)); });

// GELU of a large negative number is the number times erf + 1, which must be 0.
TEST(erf, is_exactly_one_far_from_zero) {
  const std::vector<double> far{4.2, 5, 88, 1e30, std::numeric_limits<double>::infinity()};
  const shape line = f32({2 * static_cast<std::int64_t>(far.size())});
  std::vector<double> inputs, expected;
  for (double x : far)
    for (double sign : {1, -1}) inputs.push_back(sign * x), expected.push_back(sign);
  auto m = fusion({line}, [](module& m, const std::vector<value>& p) {
    return std::vector<value>{m.add(elementwise{scalar_function::erf}, p)};
  });
  for (const target_row& target : runnable_targets())
    expect_close(loaded_kernel(*m, target).run(std::vector{literal::from_doubles(line, inputs)})[0],
                 literal::from_doubles(line, expected), {0, 0}, target.name);
}

// These powers are products, quotients and roots.
TEST(pow, of_constant_exponents_agrees_with_the_reference) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> numbers{0, 0.1, 0.5, 1, 2, 7, 100, 1e4, -1, -3, inf, -inf, nan};
  const shape line = f32({static_cast<std::int64_t>(numbers.size())});
  for (double exponent : {1.0, 2.0, 3.0, 4.0, -1.0, 0.5, -0.5, 0.75, 0.3}) {
    SCOPED_TRACE(exponent);
    auto m = fusion({line}, [&](module& m, const std::vector<value>& p) {
      const value constant =
          m.add(broadcast{p[0].type().dims}, {m.add_constant(literal::scalar(element_type::f32, exponent))});
      return std::vector<value>{m.add(elementwise{scalar_function::pow}, {p[0], constant})};
    });
    check(*m, std::vector{literal::from_doubles(line, numbers)});
  }
}

TEST(map, converts_between_every_pair_of_types) {
  for (element_type from : computing_types)
    for (element_type to : computing_types) {
      auto m = fusion({typed(from, {5, 19})}, [&](module& m, const std::vector<value>& p) {
        return std::vector<value>{m.add(convert{to}, p)};
      });
      SCOPED_TRACE(std::string(name(from)) + " to " + std::string(name(to)));
      std::mt19937 random(1);
      auto data = random_literal(typed(from, {5, 19}), random, 3);
      if (is_float(from) && is_unsigned_integer(to)) {
        auto numbers = data.to_doubles();
        for (double& x : numbers) x = std::abs(x);
        data = literal::from_doubles(data.type(), numbers);
      }
      check(*m, std::span(&data, 1));
    }
}

struct movement {
  const char* name;
  std::vector<shape> inputs;
  std::function<std::vector<value>(module&, const std::vector<value>&)> build;
};

std::vector<value> one(value v) { return {v}; }

std::vector<movement> movements() {
  using in = const std::vector<value>&;
  std::vector<dim> odd{3, 5, 17};
  return {
      {"copy", {f32({7, 33})}, [](module&, in p) { return one(p[0]); }},
      {"scalar", {f32({})}, [](module& m, in p) { return one(m.add(elementwise{scalar_function::neg}, {p[0]})); }},
      {"broadcast_rows",
       {f32({17}), f32({3, 5, 17})},
       [](module& m, in p) {
         return one(m.add(elementwise{scalar_function::add}, {m.add(broadcast{{3, 5, 17}}, {p[0]}), p[1]}));
       }},
      {"broadcast_columns",
       {f32({3, 5, 1}), f32({3, 5, 17})},
       [](module& m, in p) {
         return one(m.add(elementwise{scalar_function::mul}, {m.add(broadcast{{3, 5, 17}}, {p[0]}), p[1]}));
       }},
      {"broadcast_middle",
       {f32({4, 1, 33})},
       [](module& m, in p) { return one(m.add(broadcast{{4, 6, 33}}, {p[0]})); }},
      {"transpose_2d", {f32({33, 50})}, [](module& m, in p) { return one(m.add(transpose{{1, 0}}, {p[0]})); }},
      {"transpose_4d",
       {f32({2, 7, 5, 18})},
       [](module& m, in p) { return one(m.add(transpose{{0, 2, 1, 3}}, {p[0]})); }},
      {"transpose_nchw",
       {f32({2, 3, 9, 11})},
       [](module& m, in p) { return one(m.add(transpose{{0, 2, 3, 1}}, {p[0]})); }},
      {"transpose_add",
       {f32({20, 35}), f32({35, 20})},
       [](module& m, in p) {
         return one(m.add(elementwise{scalar_function::add}, {m.add(transpose{{1, 0}}, {p[0]}), p[1]}));
       }},
      {"slice_steps",
       {f32({9, 40})},
       [](module& m, in p) { return one(m.add(slice{{1, 38}, {4, 13}, {2, -3}}, {p[0]})); }},
      {"slice_rows",
       {f32({9, 40})},
       [](module& m, in p) { return one(m.add(slice{{2, 3}, {5, 33}, {1, 1}}, {p[0]})); }},
      {"pad_constant",
       {f32({2, 5, 19})},
       [](module& m, in p) { return one(m.add(pad{{0, 1, 2}, {1, 0, 3}, pad_mode::constant_, 2.5}, {p[0]})); }},
      {"pad_edge",
       {f32({4, 19})},
       [](module& m, in p) { return one(m.add(pad{{1, 2}, {1, 3}, pad_mode::edge, 0}, {p[0]})); }},
      {"pad_reflect",
       {f32({4, 19})},
       [](module& m, in p) { return one(m.add(pad{{3, 5}, {2, 18}, pad_mode::reflect, 0}, {p[0]})); }},
      {"pad_wrap",
       {f32({4, 19})},
       [](module& m, in p) { return one(m.add(pad{{1, 19}, {2, 7}, pad_mode::wrap, 0}, {p[0]})); }},
      {"pad_of_pad",
       {f32({6, 21})},
       [](module& m, in p) {
         value inner = m.add(pad{{1, 3}, {1, 4}, pad_mode::constant_, 1}, {p[0]});
         return one(m.add(transpose{{1, 0}}, {m.add(pad{{0, 2}, {2, 0}, pad_mode::constant_, -1}, {inner})}));
       }},
      {"concat_last",
       {f32({5, 7}), f32({5, 33}), f32({5, 2})},
       [](module& m, in p) { return one(m.add(concat{1}, p)); }},
      {"concat_alike",
       {f32({3, 64}), f32({3, 32}), f32({3, 32}), f32({3, 32}), f32({3, 32}), f32({3, 32}), f32({3, 7})},
       [](module& m, in p) { return one(m.add(concat{1}, p)); }},
      {"concat_alike_first",
       {f32({3, 5, 24}), f32({3, 5, 24}), f32({3, 5, 24}), f32({3, 5, 24}), f32({3, 5, 100})},
       [](module& m, in p) { return one(m.add(concat{2}, p)); }},
      {"concat_alike_and_scaled",
       {f32({3, 64}), f32({3, 32}), f32({3, 32}), f32({3, 32}), f32({3, 32}), f32({3, 32}), f32({3, 7}), f32({231})},
       [](module& m, in p) {
         value all = m.add(concat{1}, {p.begin(), p.end() - 1});
         return one(m.add(elementwise{scalar_function::mul}, {all, m.add(broadcast{{3, 231}}, {p.back()})}));
       }},
      {"concat_alike_and_subtracted",
       {f32({3, 16}), f32({3, 16}), f32({3, 16}), f32({3, 16}), f32({3, 64})},
       [](module& m, in p) {
         value a = m.add(concat{1}, {p[0], p[1], p[2], p[3]}), b = m.add(concat{1}, {p[3], p[1], p[0], p[2]});
         return one(m.add(elementwise{scalar_function::add}, {m.add(elementwise{scalar_function::sub}, {a, b}), p[4]}));
       }},
      {"concat_first",
       {f32({5, 7}), f32({1, 7}), f32({2, 7})},
       [](module& m, in p) { return one(m.add(concat{0}, p)); }},
      {"concat_transposed",
       {f32({5, 7}), f32({5, 9})},
       [](module& m, in p) { return one(m.add(transpose{{1, 0}}, {m.add(concat{1}, p)})); }},
      {"concat_reversed",
       {f32({5, 7}), f32({5, 12})},
       [](module& m, in p) { return one(m.add(slice{{0, 18}, {5, 19}, {1, -1}}, {m.add(concat{1}, p)})); }},
      {"reshape_split_transpose",
       {f32({6, 24})},
       [](module& m, in p) {
         return one(m.add(transpose{{1, 0, 2}},
                          {m.add(reshape{{6, 3, 8}}, {m.add(elementwise{scalar_function::neg}, {p[0]})})}));
       }},
      {"reshape_merge",
       {f32({3, 6, 32})},
       [](module& m, in p) {
         value heads = m.add(reshape{{6, 96}}, {m.add(transpose{{1, 0, 2}}, {p[0]})});
         return one(m.add(elementwise{scalar_function::add}, {heads, heads}));
       }},
      {"reshape_uneven",
       {f32({6, 35}), f32({14, 15})},
       [](module& m, in p) {
         return one(m.add(elementwise{scalar_function::sub},
                          {m.add(reshape{{14, 15}}, {m.add(transpose{{1, 0}}, {p[0]})}), p[1]}));
       }},
      {"reshape_ones",
       {f32({6, 1, 35})},
       [](module& m, in p) {
         return one(m.add(reshape{{1, 6, 35, 1}}, {m.add(elementwise{scalar_function::neg}, {p[0]})}));
       }},
      {"gather_rows",
       {f32({11, 37}), typed(element_type::i64, {4, 3})},
       [](module& m, in p) { return one(m.add(gather{0}, {p[0], p[1]})); }},
      {"gather_columns",
       {f32({6, 11}), typed(element_type::i32, {21})},
       [](module& m, in p) { return one(m.add(gather{1}, {p[0], p[1]})); }},
      {"gather_scalar",
       {f32({6, 11, 5}), typed(element_type::i64, {})},
       [](module& m, in p) { return one(m.add(gather{1}, {p[0], p[1]})); }},
      {"gather_elements",
       {f32({11, 37}), typed(element_type::i64, {5, 20})},
       [](module& m, in p) { return one(m.add(gather_elements{0}, {p[0], p[1]})); }},
      {"gather_nd",
       {f32({10, 11, 18}), typed(element_type::i64, {7, 2})},
       [](module& m, in p) { return one(m.add(gather_nd{0}, {p[0], p[1]})); }},
      {"gather_nd_batch",
       {f32({3, 10, 13}), typed(element_type::i64, {3, 5, 1})},
       [](module& m, in p) { return one(m.add(gather_nd{1}, {p[0], p[1]})); }},
      {"iota_last",
       {f32({4, 19})},
       [](module& m, in p) {
         return one(m.add(elementwise{scalar_function::add}, {p[0], m.add(iota{element_type::f32, {4, 19}, 1}, {})}));
       }},
      {"iota_first", {}, [](module& m, in) { return one(m.add(iota{element_type::i64, {7, 5}, 0}, {})); }},
      {"constant",
       {f32({4, 19})},
       [](module& m, in p) {
         return one(
             m.add(elementwise{scalar_function::mul},
                   {p[0], m.add(broadcast{{4, 19}}, {m.add_constant(literal::scalar(element_type::f32, 0.25))})}));
       }},
      {"two_outputs",
       {f32({4, 19})},
       [](module& m, in p) {
         return std::vector<value>{
             m.add(elementwise{scalar_function::neg}, {p[0]}),
             m.add(elementwise{scalar_function::greater}, {p[0], m.add(elementwise{scalar_function::neg}, {p[0]})})};
       }},
      {"flat_large",
       {f32({3, 33333})},
       [](module& m, in p) { return one(m.add(elementwise{scalar_function::exp}, {p[0]})); }},
      {"mixed_widths",
       {typed(element_type::u8, {5, 43}), f32({43})},
       [](module& m, in p) {
         return one(m.add(elementwise{scalar_function::mul},
                          {m.add(convert{element_type::f32}, {p[0]}), m.add(broadcast{{5, 43}}, {p[1]})}));
       }},
      {"nearest_double",
       {f32({1, 3, 5, 18})},
       [](module& m, in p) {
         return one(m.add(resize{{1, 6, 10, 18},
                                 {1, 2, 2, 1},
                                 resize_mode::nearest,
                                 resize_coordinates::asymmetric,
                                 resize_nearest::floor},
                          {p[0]}));
       }},
      {"nearest_last",
       {f32({2, 5, 9})},
       [](module& m, in p) { return one(m.add(resize{{2, 10, 23}, {1, 2, 2.6}, resize_mode::nearest}, {p[0]})); }},
      {"linear",
       {f32({1, 4, 5, 19})},
       [](module& m, in p) {
         return one(m.add(resize{{1, 9, 12, 19}, {1, 2.25, 2.4, 1}, resize_mode::linear}, {p[0]}));
       }},
      {"linear_last",
       {f32({3, 7, 9})},
       [](module& m, in p) {
         return one(m.add(resize{{3, 14, 20}, {1, 2, 20.0 / 9}, resize_mode::linear, resize_coordinates::align_corners},
                          {p[0]}));
       }},
      {"cubic",
       {f32({1, 6, 7, 3})},
       [](module& m, in p) {
         return one(m.add(resize{{1, 13, 5, 3}, {1, 13.0 / 6, 5.0 / 7, 1}, resize_mode::cubic}, {p[0]}));
       }},
  };
}

class every_movement : public testing::TestWithParam<movement> {};

TEST_P(every_movement, agrees_with_the_reference) { check(*fusion(GetParam().inputs, GetParam().build), 5); }

TEST_P(every_movement, agrees_in_other_types) {
  for (element_type type : {element_type::f16, element_type::f64, element_type::i8, element_type::boolean}) {
    auto inputs = GetParam().inputs;
    std::string_view name = GetParam().name;
    bool moves_only =
        std::ranges::all_of(inputs, [](const shape& s) { return s.type == element_type::f32 || is_integer(s.type); });
    if (!moves_only || name.starts_with("constant") || name.starts_with("iota") || name.starts_with("mixed") ||
        name.starts_with("flat"))
      return;
    bool computes = name.starts_with("scalar") || name.starts_with("reshape") || name.ends_with("add") ||
                    name.ends_with("scaled") || name.ends_with("subtracted") || name.starts_with("two") ||
                    name.starts_with("broadcast");
    if (computes && type == element_type::boolean) continue;
    // The operation refuses bool.
    if (name.starts_with("nearest") && type == element_type::boolean) continue;
    if ((name.starts_with("linear") || name.starts_with("cubic")) && !is_float(type)) continue;
    for (shape& s : inputs)
      if (s.type == element_type::f32) s.type = type;
    SCOPED_TRACE(std::string(kiln::name(type)));
    check(*fusion(inputs, GetParam().build), 7);
  }
}

INSTANTIATE_TEST_SUITE_P(map, every_movement, testing::ValuesIn(movements()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace kiln::test
