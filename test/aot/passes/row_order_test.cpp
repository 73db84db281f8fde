// Products of permuted rows, as multi-head attention of torch's exporters has them.
#include "aot/passes/common_subexpressions.hpp"
#include "aot/passes/constant_folding.hpp"
#include "aot/passes/restore_row_order.hpp"
#include "aot/passes/simplify_arithmetic.hpp"
#include "aot/passes/simplify_attention.hpp"
#include "aot/passes/simplify_contractions.hpp"
#include "aot/passes/simplify_movement.hpp"
#include "aot/passes/sink_reshapes.hpp"
#include "aot/passes/sink_transposes.hpp"
#include "test/aot/passes/passes_test.hpp"

namespace kiln::testing {
namespace {

using enum scalar_function;

until_stable simplify() {
  return {"simplify",
          {constant_folding{}, simplify_arithmetic{}, simplify_movement{}, simplify_contractions{},
           simplify_attention{}, common_subexpressions{}}};
}

// The passes in the order of aot/pipeline.cpp.
std::vector<pass> passes() {
  return {simplify(),
          sink_reshapes{},
          simplify(),
          sink_transposes{},
          simplify(),
          sink_reshapes{},
          sink_transposes{.ties = false},
          simplify(),
          with_cleanup{restore_row_order{}, {simplify(), sink_transposes{.ties = false}, simplify()}}};
}

value product(builder& b, value x, value w) { return b.m.add(dot{}, {x, w}); }

// x + attention(normalize(x)) with tokens [batch, position, channel], which are turned before and after the products.
value block(builder& b, value x, const dim& batch, unsigned seed) {
  const dim positions = 5, heads = 2, depth = 3, channels = 6;
  const value normal = b.f(mul, b.m.add(normalize{{2}, 1e-5}, {x}), b.w({channels}, seed));
  const value rows = b.r(b.t(normal, {1, 0, 2}), {positions * batch, channels});
  value all = b.f(add, b.r(product(b, rows, b.w({channels, 3 * channels}, seed + 1)), {positions, batch, 3 * channels}),
                  b.w({3 * channels}, seed + 2));
  all = b.r(all, {positions, batch, 3, channels});
  auto part = [&](std::int64_t which) {
    const value own = b.m.add(slice{{0, 0, which, 0}, {positions, batch, 1, channels}, {1, 1, 1, 1}}, {all});
    const value apart = b.t(b.r(own, {positions, batch * heads, depth}), {1, 0, 2});
    return b.r(apart, {batch, heads, positions, depth});
  };
  const value together = b.m.add(attention{.scale = 0.5}, {part(0), part(1), part(2)});
  const value merged = b.r(b.t(together, {2, 0, 1, 3}), {positions * batch, channels});
  const value out = b.r(product(b, merged, b.w({channels, channels}, seed + 3)), {positions, batch, channels});
  return b.f(add, {x, b.t(out, {1, 0, 2})});
}

TEST(restore_row_order, attention_of_turned_tokens_has_no_transposes) {
  const program p = transformed(
      [](builder& b) {
        const value x = b.p("x", {4, 5, 6});
        const value y = block(b, block(b, x, 4, 1), 4, 11);
        b.out({b.f(relu, {product(b, b.r(b.m.add(normalize{{2}, 1e-5}, {y}), {20, 6}), b.w({6, 7}, 21))})});
      },
      passes());
  EXPECT_EQ(count<transpose>(p.main()), 0u) << p.str();
}

TEST(restore_row_order, does_so_for_an_open_batch) {
  const dim n = dim::symbol("n");
  program p;
  p.symbols["n"] = {};
  builder b(p.main());
  b.out({block(b, block(b, b.p("x", {n, 5, 6}), n, 1), n, 11)});
  p.validate();
  auto result = [&] { return run(p.bind({{"n", 3}})); };
  const auto expected = result();
  run_passes(p, passes());
  p.validate();
  EXPECT_EQ(count<transpose>(p.main()), 0u) << p.str();
  expect_equal(expected, result(), 1e-5);
}

// One transpose would only move from the product's operand to its result.
TEST(restore_row_order, leaves_alone_what_gains_nothing) {
  program p;
  builder b(p.main());
  const value rows = b.r(b.t(b.p("x", {4, 5, 6}), {1, 0, 2}), {20, 6});
  b.out({b.f(relu, {b.r(product(b, rows, b.w({6, 7})), {5, 4, 7})})});
  EXPECT_FALSE(restore_row_order{}.apply(p.main()));
}

// The second operand has its own order, so that a transpose must stay.
// A scale that quantized models compute: a scalar becomes a row.
TEST(restore_row_order, scalars_have_no_rows) {
  program p;
  builder b(p.main());
  const value row = b.r(b.p("scale", {}), {1, 1});
  b.out({product(b, b.f(relu, {row}), b.w({1, 7}))});
  EXPECT_FALSE(restore_row_order{}.apply(p.main()));
}

TEST(restore_row_order, keeps_rows_of_different_orders_apart) {
  const program p = transformed(
      [](builder& b) {
        const value x = b.p("x", {4, 5, 6}), y = b.p("y", {20, 7});
        const value rows = b.r(b.t(x, {1, 0, 2}), {20, 6});
        const value sum = b.f(add, {product(b, rows, b.w({6, 7})), y});
        b.out({b.t(b.r(product(b, sum, b.w({7, 3}, 2)), {5, 4, 3}), {1, 0, 2})});
      },
      passes());
  EXPECT_GE(count<transpose>(p.main()), 1u) << p.str();
}

}  // namespace
}  // namespace kiln::testing
