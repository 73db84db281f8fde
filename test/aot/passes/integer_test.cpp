// Quantized products, convolutions and pooling in integers: checks the structure, and that the numbers equal those in
// floats.
#include "aot/kernels/partition.hpp"
#include "aot/passes/constant_folding.hpp"
#include "aot/passes/integer_contractions.hpp"
#include "aot/passes/integer_pooling.hpp"
#include "aot/passes/integer_weights.hpp"
#include "aot/passes/simplify_arithmetic.hpp"
#include "aot/rewrite_log.hpp"
#include "test/aot/passes/passes_test.hpp"

namespace kiln::testing {
namespace {

using enum scalar_function;
using enum element_type;

literal bytes(element_type type, std::vector<dim> dims, unsigned seed) {
  std::mt19937 generator(seed);
  shape s{type, std::move(dims)};
  std::vector<double> numbers(static_cast<std::size_t>(s.element_count()));
  for (double& x : numbers) x = static_cast<double>(generator() % 256) - (type == i8 ? 128 : 0);
  return literal::from_doubles(s, numbers);
}

// The form in which QuantizeLinear is imported.
value quantized(builder& b, value x, double scale, double zero, element_type type) {
  const double low = type == i8 ? -128 : 0;
  value q = b.f(add, b.f(round, {b.f(div, x, b.c(scale))}), b.c(zero));
  q = b.f(clamp, {q, b.to(b.c(low), q.type().dims), b.to(b.c(low + 255), q.type().dims)});
  return b.m.add(convert{type}, {q});
}

// The form in which DequantizeLinear is imported. The scale may be a tensor that broadcasts.
value dequantized(builder& b, value q, value scale, double zero) {
  value x = b.m.add(convert{f32}, {q});
  return b.f(mul, b.f(sub, x, b.c(zero)), scale);
}

value activation(builder& b, std::vector<dim> dims, double zero, element_type type) {
  return dequantized(b, quantized(b, b.p("x", std::move(dims)), 0.02, zero, type), b.c(0.02), zero);
}

void expect_integers(const module& m) {
  for (const instruction& i : m.instructions())
    if (i.op().is<dot>() || i.op().is<convolution>()) {
      EXPECT_EQ(i.inputs()[0].type().type, u8) << m.str();
      EXPECT_EQ(i.inputs()[1].type().type, i8) << m.str();
      EXPECT_EQ(i.outputs()[0].type, i32) << m.str();
    }
}

TEST(integer_contractions, dot_of_every_sign_and_zero_point) {
  for (element_type type : {u8, i8})
    for (double zero : {0.0, 127.0, type == u8 ? 255.0 : -128.0})
      for (element_type weights : {u8, i8})
        for (double weight_zero : {0.0, weights == u8 ? 128.0 : -3.0, weights == u8 ? 255.0 : -128.0}) {
          SCOPED_TRACE(std::string(name(type)) + " " + std::to_string(zero) + ", " + std::string(name(weights)) + " " +
                       std::to_string(weight_zero));
          program p = transformed(
              [&](builder& b) {
                value w = dequantized(b, b.m.add_constant(bytes(weights, {13, 7}, 3)), b.w({7}, 5), weight_zero);
                b.out({b.f(relu, {b.m.add(dot{}, {activation(b, {5, 13}, zero, type), w})})});
              },
              {integer_contractions{}}, 1e-4);
          expect_integers(p.main());
        }
}

TEST(integer_contractions, convolutions_with_padding_groups_and_strides) {
  for (element_type type : {u8, i8})
    for (double zero : {0.0, 100.0})
      for (std::int64_t groups : {1, 2, 6})
        for (bool per_channel : {false, true}) {
          SCOPED_TRACE(std::string(name(type)) + " groups " + std::to_string(groups));
          program p = transformed(
              [&](builder& b) {
                value scale = per_channel ? b.w({6, 1, 1, 1}, 5) : b.c(0.03);
                value w = dequantized(b, b.m.add_constant(bytes(i8, {6, 6 / groups, 3, 2}, 3)), scale, 0);
                const convolution op{{2, 1}, {1, 2}, {1, 0}, {2, 1}, groups};
                b.out({b.m.add(op, {activation(b, {2, 6, 9, 8}, zero, type), w})});
              },
              {integer_contractions{}}, 1e-4);
          expect_integers(p.main());
          // Padding represents 0, so it must be filled with the zero point.
          EXPECT_EQ(count<pad>(p.main()), type == u8 && zero == 0 ? 0u : 1u);
        }
}

TEST(integer_contractions, zero_point_and_scale_at_run_time) {
  for (bool image : {false, true}) {
    program p = transformed(
        [&](builder& b) {
          // The form in which DynamicQuantizeLinear followed by ConvInteger or MatMulInteger is imported.
          value x = b.p("x", image ? std::vector<dim>{1, 3, 5, 6} : std::vector<dim>{4, 10});
          value zero = b.m.add(convert{u8}, {b.f(abs, {b.p("zero", {})})});
          value q = quantized(b, x, 0.02, 90, u8), wide = b.m.add(convert{i32}, {q});
          value a = b.f(sub, wide, b.m.add(convert{i32}, {zero}));
          value w =
              b.m.add(convert{i32},
                      {b.m.add_constant(bytes(i8, image ? std::vector<dim>{2, 3, 3, 3} : std::vector<dim>{10, 3}, 3))});
          const convolution op{{1, 1}, {1, 1}, {1, 1}, {1, 1}};
          value sum = image ? b.m.add(op, {a, w}) : b.m.add(dot{.type = i32}, {a, w});
          b.out({b.f(mul, b.m.add(convert{f32}, {sum}), b.p("scale", {}))});
        },
        {integer_contractions{}}, 1e-4);
    expect_integers(p.main());
  }
}

TEST(integer_contractions, looks_through_reshapes_and_transposes) {
  program p = transformed(
      [&](builder& b) {
        value w = dequantized(b, b.m.add_constant(bytes(i8, {7, 12}, 3)), b.w({7, 1}, 5), 0);
        value a = b.r(activation(b, {2, 3, 12}, 100, u8), {6, 12});
        b.out({b.m.add(dot{}, {a, b.t(w, {1, 0})})});
      },
      {integer_contractions{}}, 1e-4);
  expect_integers(p.main());
}

TEST(integer_contractions, leaves_what_it_cannot_express) {
  auto rewritten = [](const std::function<void(builder&)>& build) {
    rewrite_log log;
    transformed(build, {integer_contractions{&log}}, 1e-4);
    return log.rewrites().size();
  };
  auto weights = [](builder& b) { return dequantized(b, b.m.add_constant(bytes(i8, {12, 7}, 3)), b.c(0.03), 0); };
  // Not rewritten: float activations; 16 bits; scales along k; weights that are not constant.
  EXPECT_EQ(rewritten([&](builder& b) { b.out({b.m.add(dot{}, {b.p("x", {3, 12}), weights(b)})}); }), 0u);
  EXPECT_EQ(rewritten([&](builder& b) {
              value q = b.m.add(convert{i16}, {b.p("x", {3, 12})});
              b.out({b.m.add(dot{}, {dequantized(b, q, b.c(0.1), 0), weights(b)})});
            }),
            0u);
  EXPECT_EQ(rewritten([&](builder& b) {
              value w = dequantized(b, b.m.add_constant(bytes(i8, {12, 7}, 3)), b.w({12, 1}, 5), 0);
              b.out({b.m.add(dot{}, {activation(b, {3, 12}, 0, u8), w})});
            }),
            0u);
  EXPECT_EQ(
      rewritten([&](builder& b) {
        b.out({b.m.add(dot{}, {activation(b, {3, 12}, 0, u8), dequantized(b, b.p("w", {12, 7}, i8), b.c(0.1), 0)})});
      }),
      0u);
}

TEST(integer_contractions, refuses_sums_beyond_32_bits) {
  rewrite_log log;
  program p;
  builder b(p.main());
  const shape type{i8, {70000, 2}};
  value w = dequantized(b, b.m.add_constant(literal::filled(type, -128)), b.c(0.1), 0);
  b.out({b.m.add(dot{}, {activation(b, {1, 70000}, 0, u8), w})});
  EXPECT_FALSE(integer_contractions{&log}.apply(p.main()));
  EXPECT_EQ(log.refusals().size(), 1u);
}

TEST(integer_weights, fit_into_signed_bytes_where_they_can) {
  const literal data = literal::from_doubles({u8, {2, 3}}, std::vector<double>{0, 128, 255, 100, 1, 2});
  const integer_weights centred = make_integer_weights(data, 1, {128});
  EXPECT_EQ(centred.elements.to_int64(), (std::vector<std::int64_t>{-128, 0, 127, -28, -127, -126}));
  EXPECT_TRUE(centred.zeros.empty());
  EXPECT_EQ(centred.sums, (std::vector<std::int64_t>{-156, -127, 1}));
  const integer_weights shifted = make_integer_weights(data, 0, {0, 200});
  EXPECT_EQ(shifted.zeros, (std::vector<std::int64_t>{-128, 72}));
  EXPECT_EQ(shifted.sums, (std::vector<std::int64_t>{383, 103 - 600}));
}

TEST(integer_pooling, keeps_the_bytes_and_their_order) {
  for (double zero : {0.0, 77.0}) {
    program p = transformed(
        [&](builder& b) {
          const pooling op{pooling_kind::max, {3, 2}, {2, 2}, {1, 1}, {1, 0}, {1, 1}};
          b.out({b.m.add(op, {activation(b, {1, 3, 9, 8}, zero, u8)})});
        },
        {integer_pooling{}});
    for (const instruction& i : p.main().instructions())
      if (i.op().is<pooling>()) {
        EXPECT_EQ(i.outputs()[0].type, u8);
      }
  }
}

// Tensors between kernels stay 8 bits wide. If a kernel adds a tensor itself, it dequantizes it inline.
TEST(partition, gives_out_bytes_rather_than_what_they_stand_for) {
  program p;
  builder b(p.main());
  auto layer = [&](value x, unsigned seed) {
    value w = dequantized(b, b.m.add_constant(bytes(i8, {16, 16}, seed)), b.c(0.03), 0);
    return quantized(b, b.m.add(dot{}, {dequantized(b, x, b.c(0.02), 5), w}), 0.02, 5, u8);
  };
  value first = layer(b.p("x", {8, 16}, u8), 3), second = layer(first, 4);
  value sum = b.f(add, dequantized(b, first, b.c(0.02), 5), dequantized(b, second, b.c(0.02), 5));
  b.out({quantized(b, sum, 0.05, 0, u8)});
  run_passes(p, {integer_contractions{}, constant_folding{}, simplify_arithmetic{}, constant_folding{}});
  const partition parts = make_partition(p.main());
  EXPECT_EQ(parts.fusions.size(), 2u) << p.main().str();
  for (const fusion& f : parts.fusions)
    for (value v : f.outputs) EXPECT_EQ(v.type().type, u8) << p.main().str();
}

}  // namespace
}  // namespace kiln::testing
