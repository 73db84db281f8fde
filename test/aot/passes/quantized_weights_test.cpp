#include <algorithm>

#include "aot/kernels/formation.hpp"
#include "aot/passes/arrange_quantized_weights.hpp"
#include "aot/passes/constant_folding.hpp"
#include "aot/passes/quantize_weights.hpp"
#include "aot/passes/quantized_matrix.hpp"
#include "aot/passes/simplify_arithmetic.hpp"
#include "test/aot/passes/passes_test.hpp"
#include "test/aot/passes/unformed.hpp"

namespace kiln::testing {
namespace {

using enum scalar_function;
using enum element_type;

// Integers from the whole range of a type of 4 or 8 bits.
literal integers(element_type type, std::vector<dim> dims, unsigned seed) {
  std::mt19937 generator(seed);
  shape s{type, std::move(dims)};
  const unsigned values = 1u << storage_bits(type);
  std::vector<double> numbers(static_cast<std::size_t>(s.element_count()));
  for (double& x : numbers) x = static_cast<double>(generator() % values) - (type == i4 || type == i8 ? values / 2 : 0);
  return literal::from_doubles(s, numbers);
}

// Returns the right factor of the only dot, which must have the form of quantized_matrix.hpp.
value weights_of(const module& m) {
  for (const instruction& i : m.instructions())
    if (const auto* d = i.op().get_if<dot>()) {
      EXPECT_TRUE(d->transpose_b);
      EXPECT_TRUE(is_quantized_matrix(i.inputs()[1])) << m.str();
      return i.inputs()[1];
    }
  ADD_FAILURE() << "no dot";
  return {};
}

const literal& packed_constant(const module& m) {
  for (const instruction& i : m.instructions())
    if (const auto* c = i.op().get_if<constant>();
        c && storage_bits(c->data.type().type) <= 8 && c->data.type().rank() > 1)
      return c->data;
  throw std::runtime_error("no packed constant");
}

// DequantizeLinear in the form in which it is imported: blocks of `block` along axis 0, or one scale per column if that
// is 0.
value dequantized(builder& b, const literal& elements, std::int64_t block, bool zero_points) {
  auto dims = elements.type().static_dims();
  auto spread = [&](value parameter) {
    if (block == 0) return b.to(b.r(parameter, {1, dims[1]}), {dims[0], dims[1]});
    return b.r(b.to(b.r(parameter, {dims[0] / block, 1, dims[1]}), {dims[0] / block, block, dims[1]}),
               {dims[0], dims[1]});
  };
  const std::vector<dim> given = block ? std::vector<dim>{dims[0] / block, dims[1]} : std::vector<dim>{dims[1]};
  value x = b.m.add(convert{f32}, {b.m.add_constant(elements)});
  if (zero_points)
    x = b.f(sub, x, b.m.add(convert{f32}, {spread(b.m.add_constant(integers(elements.type().type, given, 5)))}));
  return b.f(mul, x, spread(b.w(given, 9)));
}

TEST(arrange_quantized_weights, puts_k_innermost) {
  for (element_type type : {i4, u4, i8, u8})
    for (std::int64_t block : {0, 16})
      for (bool zero_points : {false, true}) {
        program p = transformed(
            [&](builder& b) {
              b.out({b.m.add(dot{},
                             {b.p("x", {3, 48}), dequantized(b, integers(type, {48, 20}, 3), block, zero_points)})});
            },
            {arrange_quantized_weights{}});
        weights_of(p.main());
        EXPECT_EQ(packed_constant(p.main()).type().static_dims(),
                  (block ? std::vector<std::int64_t>{20, 3, 16} : std::vector<std::int64_t>{20, 48}));
      }
}

TEST(arrange_quantized_weights, floats_of_few_bits_keep_their_fractions) {
  for (element_type type : {f4e2m1, f8e4m3, f8e5m2}) {
    std::mt19937 generator(3);
    std::vector<double> numbers(48 * 20);
    for (double& x : numbers) x = (static_cast<double>(generator() % 9) - 4) / 2;
    const literal elements = literal::from_doubles({type, {48, 20}}, numbers);
    program p = transformed(
        [&](builder& b) { b.out({b.m.add(dot{}, {b.p("x", {3, 48}), dequantized(b, elements, 16, false)})}); },
        {arrange_quantized_weights{}});
    weights_of(p.main());
    EXPECT_EQ(packed_constant(p.main()).type().static_dims(), (std::vector<std::int64_t>{20, 3, 16}));
    EXPECT_EQ(packed_constant(p.main()).at(1), elements.at(20));
  }
}

// Arithmetic is simplified in between: x − 8 is x + −8 then.
TEST(arrange_quantized_weights, one_zero_point_for_all_stays_in_the_product) {
  program p = transformed(
      [&](builder& b) {
        const std::vector<dim> dims{48, 20};
        value zero = b.to(b.m.add_constant(literal::from_doubles({f32, {1, 1}}, std::vector<double>{8})), dims);
        value x = b.f(sub, b.m.add(convert{f32}, {b.m.add_constant(integers(u4, dims, 3))}), zero);
        value scale = b.r(b.to(b.r(b.w({3, 20}, 9), {3, 1, 20}), {3, 16, 20}), dims);
        b.out({b.m.add(dot{}, {b.p("x", {3, 48}), b.f(mul, x, scale)})});
      },
      {arrange_quantized_weights{}, simplify_arithmetic{}, constant_folding{}});
  weights_of(p.main());
  EXPECT_EQ(packed_constant(p.main()).type().static_dims(), (std::vector<std::int64_t>{20, 3, 16}));
  EXPECT_TRUE(std::ranges::any_of(p.main().instructions(), [](const instruction& i) {
    const auto* e = i.op().get_if<elementwise>();
    return e && e->function == add;
  }));
}

TEST(arrange_quantized_weights, finds_groups_in_scales_that_were_spread) {
  std::vector<double> scales(48 * 20);
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = 1 + static_cast<double>(i / 20 / 16 * 20 + i % 20) / 64;
  program p = transformed(
      [&](builder& b) {
        value scale = b.m.add_constant(literal::from_doubles({f32, {48, 20}}, scales));
        b.out(
            {b.m.add(dot{}, {b.p("x", {3, 48}),
                             b.f(mul, b.m.add(convert{f32}, {b.m.add_constant(integers(i4, {48, 20}, 3))}), scale)})});
      },
      {arrange_quantized_weights{}});
  weights_of(p.main());
  EXPECT_EQ(packed_constant(p.main()).type().static_dims(), (std::vector<std::int64_t>{20, 3, 16}));
}

TEST(arrange_quantized_weights, looks_through_a_transpose_and_dims_of_one) {
  program p = transformed(
      [&](builder& b) {
        value w = b.r(b.t(dequantized(b, integers(i4, {20, 48}, 3), 0, false), {1, 0}), {1, 48, 20});
        b.out({b.m.add(dot{}, {b.p("x", {1, 3, 48}), w})});
      },
      {arrange_quantized_weights{}});
  // 48 elements along k with one scale each do not form a group.
  EXPECT_FALSE(only<dot>(p.main())->transpose_b);
  p = transformed(
      [&](builder& b) {
        value scale = b.to(b.r(b.w({20}, 4), {20, 1}), {20, 48});
        value w =
            b.r(b.t(b.f(mul, b.m.add(convert{f32}, {b.m.add_constant(integers(i4, {20, 48}, 3))}), scale), {1, 0}),
                {1, 48, 20});
        b.out({b.m.add(dot{}, {b.p("x", {1, 3, 48}), w})});
      },
      {arrange_quantized_weights{}});
  EXPECT_EQ(weights_of(p.main()).type().static_dims(), (std::vector<std::int64_t>{1, 20, 48}));
}

TEST(constant_folding, leaves_weights_of_four_bits_packed) {
  auto build = [](std::int64_t n) {
    return [n](builder& b) {
      b.out(
          {b.m.add(dot{.transpose_b = true}, {b.p("x", {2, 16}), dequantized(b, integers(i4, {n, 16}, 1), 0, false)})});
    };
  };
  EXPECT_EQ(count<convert>(transformed(build(32), {constant_folding{}}).main()), 1u);
  EXPECT_EQ(count<convert>(transformed(build(31), {constant_folding{}}).main()), 0u);
}

// Bytes are read by other operations as well, which would convert them again in every run.
TEST(constant_folding, leaves_weights_of_bytes_to_products_only) {
  auto converts = [](bool transpose_b, bool read_elsewhere) {
    const std::vector<dim> dims = transpose_b ? std::vector<dim>{32, 16} : std::vector<dim>{16, 32};
    return count<convert>(transformed(
                              [&](builder& b) {
                                value w = dequantized(b, integers(i8, dims, 1), 0, true);
                                b.out({b.m.add(dot{.transpose_b = transpose_b}, {b.p("x", {2, 16}), w})});
                                if (read_elsewhere) b.out({b.f(add, w, b.p("y", dims))});
                              },
                              {constant_folding{}})
                              .main());
  };
  EXPECT_EQ(converts(true, false), 1u);  // the zero points are converted ahead of time
  EXPECT_EQ(converts(true, true), 0u);
  EXPECT_EQ(converts(false, false), 0u);
}

TEST(quantize_weights, quantizes_products_and_counts) {
  quantization_report report;
  const quantize_weights pass{.report = &report, .most_group = 64, .fewest_elements = 1024};
  program p;
  builder b(p.main());
  value x = b.p("x", {3, 96});
  std::vector<double> normal(96 * 40);
  std::mt19937 generator(1);
  for (double& v : normal) v = std::normal_distribution<>(0, 0.05)(generator);
  value w = b.m.add_constant(literal::from_doubles({f32, {96, 40}}, normal));
  b.out({b.m.add(dot{}, {x, w}), b.m.add(dot{}, {x, b.w({96, 4})})});
  auto expected = run(p);
  ASSERT_TRUE(pass.apply(p.main()));
  p.validate();
  EXPECT_EQ(report.quantized, 1);
  EXPECT_EQ(report.too_small, 1);
  EXPECT_EQ(report.bytes_before, 96 * 40 * 4);
  EXPECT_EQ(report.bytes_after, 96 * 40 / 2 + 40 * 3 * 4);
  EXPECT_LT(report.largest_error, 0.11);
  EXPECT_GT(report.largest_error, 0.05);
  EXPECT_EQ(packed_constant(p.main()).type().static_dims(), (std::vector<std::int64_t>{40, 3, 32}));
  auto got = run(p);
  double error = 0, whole = 0;
  for (std::int64_t i = 0; i < 3 * 40; ++i)
    error += std::pow(got[0].at(i) - expected[0].at(i), 2), whole += std::pow(expected[0].at(i), 2);
  EXPECT_LT(std::sqrt(error / whole), 0.15);
  EXPECT_GT(error, 0);
  expect_equal({expected[1]}, {got[1]}, 0);
  EXPECT_FALSE(pass.apply(p.main()));
}

TEST(quantize_weights, what_four_bits_hold_is_kept_exactly) {
  for (element_type type : {f32, f16, bf16})
    for (bool transposed : {false, true}) {
      const literal elements = integers(i4, transposed ? std::vector<dim>{24, 64} : std::vector<dim>{64, 24}, 2);
      std::vector<double> numbers = elements.to_doubles();
      for (double& v : numbers) v *= 0.125;
      // Every group contains an element of the largest magnitude.
      for (std::int64_t n = 0; n < 24; ++n)
        numbers[static_cast<std::size_t>(transposed ? n * 64 : n)] =
            numbers[static_cast<std::size_t>(transposed ? n * 64 + 32 : 32 * 24 + n)] = -1;
      program p;
      builder b(p.main());
      value w = b.m.add_constant(literal::from_doubles({type, elements.type().dims}, numbers));
      b.out({b.m.add(dot{.transpose_b = transposed, .type = type}, {b.p("x", {2, 64}, type), w})});
      auto expected = run(p);
      quantization_report report;
      ASSERT_TRUE((quantize_weights{.report = &report, .most_group = 32, .fewest_elements = 1}).apply(p.main()));
      EXPECT_EQ(report.largest_error, 0);
      expect_equal(expected, run(p), 0);
    }
}

TEST(quantize_weights, leaves_alone_what_it_should) {
  quantization_report report;
  const quantize_weights pass{.report = &report, .fewest_elements = 1};
  // Not quantized: a table that is also gathered from, a left factor, a depth of odd size, outliers, integers.
  // Elements below half a step of the largest one become 0.
  std::vector<double> outliers(64 * 2, 0.06);
  for (std::size_t i = 0; i < outliers.size(); i += 64) outliers[i] = 1;
  program p = transformed(
      [&](builder& b) {
        value table = b.w({64, 64}, 3), x = b.p("x", {2, 64});
        b.out({b.m.add(gather{0}, {table, b.p("i", {2}, i64)}), b.m.add(dot{.transpose_b = true}, {x, table}),
               b.m.add(dot{}, {b.w({8, 64}, 4), b.p("y", {64, 3})}),
               b.m.add(dot{}, {b.p("z", {2, 33}), b.w({33, 64}, 5)}),
               b.m.add(dot{.transpose_b = true},
                       {x, b.m.add_constant(literal::from_doubles({f32, {2, 64}}, outliers))})});
      },
      {pass}, 0);
  EXPECT_EQ(count<convert>(p.main()), 0u);
  EXPECT_EQ(report.quantized, 0);
  EXPECT_EQ(report.too_small, 1);
  EXPECT_EQ(report.too_inexact, 1);
}

TEST(form_kernels, unpacking_is_the_prologue_of_the_product) {
  for (element_type type : {i4, u8}) {
    program p;
    builder b(p.main());
    value y = b.m.add(dot{}, {b.p("x", {3, 48}), dequantized(b, integers(type, {48, 20}, 3), 16, true)});
    b.out({b.f(relu, {b.f(add, y, b.w({20}, 8))})});
    arrange_quantized_weights{}.apply(p.main());
    auto expected = run(p);
    std::vector<formed_kernel> kernels;
    form_kernels(p, write_text, &kernels);
    ASSERT_EQ(kernels.size(), 1u);
    const module& fusion = *kernels[0].fusion;
    EXPECT_EQ(count<dot>(fusion), 1u);
    auto parameters = fusion.parameters();
    EXPECT_TRUE(std::ranges::any_of(parameters, [&](value v) {
      return v.type().type == type && v.type().elements() == dim(48 * 20);
    })) << fusion.str();
    EXPECT_FALSE(std::ranges::any_of(parameters, [&](value v) {
      return v.type().type != type && v.type().elements() == dim(48 * 20);
    })) << fusion.str();
    expect_equal(expected, run(unformed(p, kernels)), 1e-5);
  }
}

}  // namespace
}  // namespace kiln::testing
