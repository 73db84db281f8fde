#include "aot/passes/convert_precision.hpp"

#include "test/aot/passes/passes_test.hpp"

namespace kiln::testing {
namespace {

using enum scalar_function;

void expect_no_f32_inside(const module& m) {
  for (const instruction& i : m.instructions())
    if (!i.op().is<parameter>() && !i.op().is<convert>()) {
      for (const shape& out : i.outputs()) EXPECT_NE(out.type, element_type::f32) << i.op().str();
    }
}

TEST(convert_precision, keeps_the_interface_and_converts_inside) {
  for (element_type type : {element_type::f16, element_type::bf16}) {
    program p;
    builder b(p.main());
    value x = b.p("x", {3, 5}), index = b.p("index", {2}, element_type::i64);
    value y = b.f(add, b.m.add(dot{}, {x, b.w({5, 7})}), b.w({7}, 2));
    y = b.f(mul, {b.m.add(softmax{-1}, {y}), b.m.add(normalize{{1}, 1e-3}, {y})});
    b.out({b.m.add(gather{1}, {y, index}), x});
    auto expected = run(p);
    run_passes(p, {convert_precision{type}});
    p.validate();
    expect_no_f32_inside(p.main());
    expect_equal(expected, run(p), type == element_type::f16 ? 4e-3 : 3e-2);
    // A value that is passed through unchanged is not rounded.
    expect_equal({expected[1]}, {run(p)[1]}, 0);
  }
}

TEST(convert_precision, keeps_finite_constants_finite) {
  program p;
  builder b(p.main());
  b.out({b.f(add, b.p("x", {3}), b.c(-3.4028234663852886e38)), b.f(add, b.p("y", {3}), b.c(-INFINITY))});
  run_passes(p, {convert_precision{element_type::f16}});
  auto results = run(p);
  EXPECT_NEAR(results[0].at(0), -65504, 10);
  EXPECT_EQ(results[1].at(0), -INFINITY);
}

TEST(convert_precision, leaves_arithmetic_on_positions_alone) {
  program p;
  builder b(p.main());
  value position = b.m.add(convert{element_type::f32}, {b.m.add(iota{element_type::i64, {5000}, 0}, {})});
  value half = b.m.add(convert{element_type::i64}, {b.f(add, b.f(mul, position, b.c(2)), b.c(1))});
  b.out({b.m.add(gather{0}, {b.p("x", {10001}), half})});
  auto expected = run(p);
  run_passes(p, {convert_precision{element_type::bf16}});
  p.validate();
  expect_equal(expected, run(p), 1e-2);
}

TEST(convert_precision, converts_bodies_with_their_interface) {
  program p;
  module& yes = p.add_module("yes");
  builder y(yes);
  y.out({y.f(mul, y.p("a", {3}), y.c(2))});
  module& no = p.add_module("no");
  builder n(no);
  n.out({n.p("a", {3})});
  builder b(p.main());
  value condition = b.p("condition", {}, element_type::boolean), x = b.p("x", {3});
  b.out({b.m.add(if_else{}, {condition, b.f(exp, {x})}, {&yes, &no})});
  std::vector<literal> inputs{literal::scalar(element_type::boolean, 1), random_literal({element_type::f32, {3}}, 3)};
  auto expected = evaluate(p.main(), inputs);
  run_passes(p, {convert_precision{element_type::f16}});
  p.validate();
  EXPECT_EQ(p.modules().size(), 3u);
  for (const module& m : p.modules()) expect_no_f32_inside(m);
  expect_equal(expected, evaluate(p.main(), inputs), 4e-3);
}

}  // namespace
}  // namespace kiln::testing
