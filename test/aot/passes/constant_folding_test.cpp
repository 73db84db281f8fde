#include "aot/passes/constant_folding.hpp"

#include "aot/passes/common_subexpressions.hpp"
#include "aot/passes/constant_conditions.hpp"
#include "aot/passes/dead_code.hpp"
#include "test/aot/passes/passes_test.hpp"

namespace kiln::testing {
namespace {

using enum scalar_function;

TEST(constant_folding, folds_what_depends_on_constants_only) {
  auto build = [](builder& b) {
    value x = b.p("x", {3, 5});
    b.out({b.f(add, x, b.t(b.f(mul, b.w({5, 3}), b.c(2)), {1, 0}))});
  };
  program p = transformed(build, {constant_folding{}});
  EXPECT_EQ(p.main().instructions().size(), 3u) << p.str();  // parameter, constant, add
  EXPECT_EQ(count<transpose>(p.main()), 0u);
}

TEST(constant_folding, what_has_no_elements_needs_no_data) {
  auto build = [](builder& b) {
    value x = b.p("x", {3, 0, 5}), sum = b.m.add(reduce{reduction_kind::sum, {1}, false}, {b.f(exp, {x})});
    value places = b.m.add(arg_reduce{true, 2, true, false}, {x});
    b.out({b.f(add, b.p("y", {3, 5}), sum), b.m.add(reduce{reduction_kind::max, {1}, false},
                                                    {b.r(b.m.add(convert{element_type::f32}, {places}), {3, 0})})});
  };
  program p = transformed(build, {constant_folding{}});
  EXPECT_EQ(count<reduce>(p.main()) + count<arg_reduce>(p.main()) + count<elementwise>(p.main()), 1u)
      << p.str();  // the addition
}

TEST(constant_folding, keeps_broadcasts_and_shrinks_splats) {
  auto build = [](builder& b) {
    value x = b.p("x", {7, 3});
    value ones = b.m.add_constant(literal::filled({element_type::f32, {7, 3}}, 1.5));
    b.out({b.f(add, {x, b.f(mul, {ones, ones})})});
  };
  program p = transformed(build, {constant_folding{}});
  EXPECT_EQ(p.main().str(), text_of([](builder& b) {
              value c = b.c(2.25);
              value x = b.p("x", {7, 3});
              b.out({b.f(add, x, c)});
            }));
}

TEST(constant_folding, folds_large_results_only_where_nothing_grows) {
  auto build = [](builder& b) {
    value w = b.w({40, 30}), v = b.w({40, 1}, 2);
    b.out({b.f(add, b.p("x", {30, 40}), b.t(w, {1, 0})),
           b.f(add, b.p("y", {40, 40}), b.m.add(dot{.transpose_b = true}, {v, v}))});
  };
  program p = transformed(build, {constant_folding{.limit_bytes = 1000}});
  EXPECT_EQ(count<transpose>(p.main()), 0u);  // 4800 bytes from 4800 bytes
  EXPECT_EQ(count<dot>(p.main()), 1u);        // 6400 bytes from 160
}

TEST(constant_folding, folds_integer_arithmetic_behind_broadcasts_and_iota) {
  auto build = [](builder& b) {
    value index = b.m.add(iota{element_type::i64, {4}, 0}, {});
    value picked = b.m.add(gather{0}, {b.w({9}), b.f(add, index, b.c(2, element_type::i64))});
    b.out({b.f(mul, {b.p("x", {4}), picked})});
  };
  program p = transformed(build, {constant_folding{}});
  EXPECT_EQ(p.main().instructions().size(), 3u) << p.str();
}

TEST(common_subexpressions, joins_equal_computations_and_equal_constants) {
  auto build = [](builder& b) {
    value x = b.p("x", {3, 5});
    value a = b.f(mul, x, b.w({5}, 3)), c = b.f(mul, x, b.w({5}, 3)), d = b.f(mul, x, b.w({5}, 4));
    b.out({b.f(add, {b.f(add, {a, c}), d})});
  };
  program p = transformed(build, {common_subexpressions{}});
  EXPECT_EQ(count<constant>(p.main()), 2u);
  EXPECT_EQ(count<elementwise>(p.main()), 4u);
}

TEST(common_subexpressions, tells_attributes_and_outputs_apart) {
  auto build = [](builder& b) {
    value x = b.p("x", {6});
    value best = b.m.add(top_k{2, 0, true}, {x}), worst = b.m.add(top_k{2, 0, false}, {x}),
          again = b.m.add(top_k{2, 0, true}, {x});
    b.out({best, worst, value{again.producer, 1}});
  };
  program p = transformed(build, {common_subexpressions{}});
  EXPECT_EQ(count<top_k>(p.main()), 2u);
}

TEST(dead_code, erases_unused_instructions_and_modules_but_no_parameters) {
  program p;
  builder b(p.main());
  value x = b.p("x", {3}), unused = b.p("unused", {3});
  b.f(exp, {unused});
  b.out({b.f(relu, {x})});
  p.add_module("orphan");
  EXPECT_TRUE(dead_code{}.apply(p));
  EXPECT_EQ(p.main().instructions().size(), 3u);
  EXPECT_EQ(p.modules().size(), 1u);
  EXPECT_FALSE(dead_code{}.apply(p));
}

TEST(constant_conditions, takes_the_branch) {
  for (bool condition : {true, false}) {
    program p;
    module& yes = p.add_module("yes");
    builder y(yes);
    y.out({y.f(exp, {y.p("a", {3})})});
    module& no = p.add_module("no");
    builder n(no);
    n.out({n.f(neg, {n.p("a", {3})})});
    builder b(p.main());
    value x = b.p("x", {3});
    value result = b.m.add(if_else{}, {b.c(condition, element_type::boolean), x}, {&yes, &no});
    b.out({b.f(abs, {result})});
    auto expected = run(p);
    run_passes(p, {constant_conditions{}, dead_code{}});
    p.validate();
    EXPECT_EQ(p.modules().size(), 1u);
    EXPECT_EQ(p.main().instructions().size(), 3u);
    expect_equal(expected, run(p), 0);
  }
}

// A small constant whose products would cost more than the rest of the model, and one that would be copied for every
// node.
TEST(constant_folding, stays_within_its_budget) {
  program dear;
  builder d(dear.main());
  value w = d.w({64, 64}), chain = w;
  for (int i = 0; i < 40; ++i) chain = d.m.add(kiln::dot{false, false, element_type::f32}, {w, chain});
  d.out({chain});
  folding_budget budget(dear, 1e6);
  run_passes(dear, {constant_folding{.budget = &budget}});
  dear.validate();
  EXPECT_GT(count<kiln::dot>(dear.main()), 5u);
  EXPECT_LT(count<kiln::dot>(dear.main()), 40u) << "what is cheap enough is folded";

  program large;
  builder l(large.main());
  value kept = l.w({1024, 1024});
  std::vector<value> outputs;
  for (int i = 0; i < 500; ++i) outputs.push_back(l.f(add, l.t(kept, {1, 0}), l.c(i + 1)));
  l.out(outputs);
  folding_budget keeping(large);
  run_passes(large, {constant_folding{.budget = &keeping}});
  large.validate();
  EXPECT_GT(count<elementwise>(large.main()), 300u);
}

}  // namespace
}  // namespace kiln::testing
