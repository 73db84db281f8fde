// Products of quantized 8-bit floats: checks the structure, and that the numbers equal those of dequantized operands.
#include "aot/passes/constant_folding.hpp"
#include "aot/passes/float8_contractions.hpp"
#include "aot/passes/simplify_arithmetic.hpp"
#include "aot/passes/simplify_contractions.hpp"
#include "aot/rewrite_log.hpp"
#include "test/aot/passes/passes_test.hpp"

namespace kiln::testing {
namespace {

using enum scalar_function;
using enum element_type;

literal eighths(element_type type, std::vector<dim> dims, unsigned seed) {
  std::mt19937 generator(seed);
  shape s{type, std::move(dims)};
  std::vector<double> numbers(static_cast<std::size_t>(s.element_count()));
  for (double& x : numbers) x = (static_cast<double>(generator() % 256) - 128) / 8;
  return literal::from_doubles(s, numbers);
}

// The forms in which QuantizeLinear and DequantizeLinear are imported.
value quantized(builder& b, value x, double scale, element_type type) {
  value q = b.f(div, x, b.c(scale));
  q = b.f(clamp, {q, b.to(b.c(-448), q.type().dims), b.to(b.c(448), q.type().dims)});
  return b.m.add(convert{type}, {q});
}
value dequantized(builder& b, value q, value scale) {
  value x = b.m.add(convert{f32}, {q});
  return b.f(
      mul,
      b.f(sub, x, b.to(b.m.add(convert{f32}, {b.m.add_constant(literal::scalar(q.type().type, 0))}), x.type().dims)),
      scale);
}
value activation(builder& b, std::vector<dim> dims, element_type type) {
  return dequantized(b, quantized(b, b.p("x", std::move(dims)), 0.02, type), b.c(0.02));
}

void expect_float8(const module& m, element_type type) {
  std::size_t dots = 0;
  for (const instruction& i : m.instructions())
    if (i.op().is<dot>()) {
      ++dots;
      for (value v : i.inputs()) EXPECT_EQ(v.type().type, type) << m.str();
      EXPECT_EQ(i.outputs()[0].type, f32) << m.str();
    }
  EXPECT_EQ(dots, 1u);
}

TEST(float8_contractions, scales_of_tensors_and_columns) {
  for (element_type type : {f8e4m3, f8e5m2, f8e4m3fnuz})
    for (bool per_column : {false, true})
      for (bool transposed : {false, true}) {
        SCOPED_TRACE(std::string(name(type)) + (per_column ? " per column" : "") + (transposed ? " transposed" : ""));
        program p = transformed(
            [&](builder& b) {
              const std::vector<dim> dims = transposed ? std::vector<dim>{7, 13} : std::vector<dim>{13, 7};
              value scale = !per_column ? b.c(0.03) : transposed ? b.w({7, 1}, 5) : b.w({7}, 5);
              value w = dequantized(b, b.m.add_constant(eighths(type, dims, 3)), scale);
              b.out({b.f(relu, {b.m.add(dot{.transpose_b = transposed}, {activation(b, {5, 13}, type), w})})});
            },
            {float8_contractions{}}, 1e-4);
        expect_float8(p.main(), type);
      }
}

// Scales must not be multiplied into weights of 8 bits afterwards.
TEST(float8_contractions, weights_keep_their_bits) {
  program p = transformed(
      [](builder& b) {
        value w = dequantized(b, b.m.add_constant(eighths(f8e4m3, {13, 7}, 3)), b.w({7}, 5));
        b.out({b.m.add(dot{}, {activation(b, {5, 13}, f8e4m3), w})});
      },
      {float8_contractions{}, constant_folding{}, simplify_arithmetic{}, simplify_contractions{}}, 1e-4);
  expect_float8(p.main(), f8e4m3);
}

TEST(float8_contractions, leaves_what_it_cannot_express) {
  auto rewritten = [](const std::function<void(builder&)>& build) {
    rewrite_log log;
    transformed(build, {float8_contractions{&log}}, 1e-4);
    return log.rewrites().size();
  };
  // Float activations; other types; scales along k.
  EXPECT_EQ(rewritten([](builder& b) {
              value w = dequantized(b, b.m.add_constant(eighths(f8e4m3, {12, 7}, 3)), b.c(0.03));
              b.out({b.m.add(dot{}, {b.p("x", {3, 12}), w})});
            }),
            0u);
  EXPECT_EQ(rewritten([](builder& b) {
              value w = dequantized(b, b.m.add_constant(eighths(f8e5m2, {12, 7}, 3)), b.c(0.03));
              b.out({b.m.add(dot{}, {activation(b, {3, 12}, f8e4m3), w})});
            }),
            0u);
  EXPECT_EQ(rewritten([](builder& b) {
              value w = dequantized(b, b.m.add_constant(eighths(f8e4m3, {12, 7}, 3)), b.w({12, 1}, 5));
              b.out({b.m.add(dot{}, {activation(b, {3, 12}, f8e4m3), w})});
            }),
            0u);
}

}  // namespace
}  // namespace kiln::testing
