#include <limits>

#include "aot/passes/common_subexpressions.hpp"
#include "aot/passes/constant_folding.hpp"
#include "aot/passes/fuse_attention.hpp"
#include "aot/passes/simplify_arithmetic.hpp"
#include "aot/passes/simplify_attention.hpp"
#include "aot/passes/simplify_contractions.hpp"
#include "aot/passes/simplify_movement.hpp"
#include "aot/passes/sink_reshapes.hpp"
#include "aot/passes/sink_transposes.hpp"
#include "ir/prefix_mask.hpp"
#include "test/aot/passes/passes_test.hpp"

namespace kiln::testing {
namespace {

using enum scalar_function;
using enum element_type;
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr head_layout sequence_first = head_layout::sequence_first;

until_stable simplify() {
  return {"simplify",
          {constant_folding{}, simplify_arithmetic{}, simplify_movement{}, simplify_contractions{},
           simplify_attention{}, common_subexpressions{}}};
}
// The passes in the order of aot/pipeline.cpp.
std::vector<pass> passes() {
  return {simplify(),        fuse_attention{}, sink_reshapes{}, simplify(),
          sink_transposes{}, simplify(),       sink_reshapes{}, sink_transposes{.ties = false},
          simplify()};
}

program fused(const std::function<void(builder&)>& build, double tolerance = 1e-5) {
  program p = transformed(build, passes(), tolerance);
  EXPECT_EQ(count<attention>(p.main()), 1u) << p.str();
  EXPECT_EQ(count<softmax>(p.main()), 0u);
  EXPECT_EQ(count<dot>(p.main()), 0u);
  return p;
}

void expect_left_alone(const std::function<void(builder&)>& build) {
  program p = transformed(build, passes());
  EXPECT_EQ(count<attention>(p.main()), 0u) << p.str();
}

value product(builder& b, value x, value y, bool turn_a = false, bool turn_b = false) {
  return b.m.add(dot{turn_a, turn_b, x.type().type}, {x, y});
}
value softmaxed(builder& b, value x, std::int64_t axis = -1) { return b.m.add(softmax{axis}, {x}); }
value as(builder& b, value x, element_type type) { return b.m.add(convert{type}, {x}); }

// Reshapes and transposes [B, S, H*D] to [B, H, S, D].
value split(builder& b, value x, std::int64_t heads) {
  auto d = x.type().static_dims();
  return b.t(b.r(x, {d[0], d[1], heads, d[2] / heads}), {0, 2, 1, 3});
}
value merged(builder& b, value x) {
  auto d = x.type().static_dims();
  return b.r(b.t(x, {0, 2, 1, 3}), {d[0], d[2], d[1] * d[3]});
}

literal mask_of(std::int64_t queries, std::int64_t keys, double seen, double hidden, element_type type = f32) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < queries; ++i)
    for (std::int64_t j = 0; j < keys; ++j) values.push_back(j <= i + keys - queries ? seen : hidden);
  return literal::from_doubles({type, {queries, keys}}, values);
}

// Queries, keys and values [2, 3, 5 or 7, 4] and what `scores` makes of their product.
std::function<void(builder&)> plain(const std::function<value(builder&, value)>& scores, std::int64_t keys = 7) {
  return [=](builder& b) {
    value q = b.p("q", {2, 3, 5, 4}), k = b.p("k", {2, 3, keys, 4}), v = b.p("v", {2, 3, keys, 6});
    b.out({product(b, softmaxed(b, scores(b, product(b, q, k, false, true))), v)});
  };
}

TEST(fuse_attention, the_bare_form) {
  program p = fused(plain([](builder&, value s) { return s; }));
  EXPECT_EQ(p.main().str(), text_of([](builder& b) {
              b.out({b.m.add(attention{}, {b.p("q", {2, 3, 5, 4}), b.p("k", {2, 3, 7, 4}), b.p("v", {2, 3, 7, 6})})});
            }));
}

TEST(fuse_attention, scale_on_the_scores_on_queries_and_on_keys) {
  program p = fused(plain([](builder& b, value s) { return b.f(mul, s, b.c(0.5)); }));
  EXPECT_EQ(only<attention>(p.main())->scale, 0.5);
  p = fused(plain([](builder& b, value s) { return b.f(div, s, b.c(4)); }));
  EXPECT_EQ(only<attention>(p.main())->scale, 0.25);
  p = fused([](builder& b) {
    value q = b.f(div, b.p("q", {2, 3, 5, 4}), b.c(2)),
          k = b.f(mul, b.t(b.p("k", {2, 3, 7, 4}), {0, 1, 3, 2}), b.c(0.5));
    b.out({product(b, softmaxed(b, b.f(mul, product(b, q, k), b.c(3))), b.p("v", {2, 3, 7, 6}))});
  });
  EXPECT_EQ(only<attention>(p.main())->scale, 0.75);
  EXPECT_EQ(count<transpose>(p.main()), 0u) << p.str();
}

TEST(fuse_attention, head_transposes_become_layouts) {
  program p = fused([](builder& b) {  // BERT
    value q = split(b, b.p("q", {2, 5, 12}), 3), k = split(b, b.p("k", {2, 7, 12}), 3),
          v = split(b, b.p("v", {2, 7, 18}), 3);
    value s = b.f(mul, product(b, q, b.t(k, {0, 1, 3, 2})), b.c(0.5));
    b.out({merged(b, product(b, softmaxed(b, b.f(add, s, b.p("mask", {2, 1, 1, 7}))), v))});
  });
  EXPECT_EQ(p.main().str(), text_of([](builder& b) {
              value q = b.r(b.p("q", {2, 5, 12}), {2, 5, 3, 4}), k = b.r(b.p("k", {2, 7, 12}), {2, 7, 3, 4}),
                    v = b.r(b.p("v", {2, 7, 18}), {2, 7, 3, 6});
              attention a{0.5, false, sequence_first, sequence_first, sequence_first, sequence_first};
              b.out({b.r(b.m.add(a, {q, k, v, b.p("mask", {2, 1, 1, 7})}), {2, 5, 18})});
            }));
}

TEST(fuse_attention, queries_keys_and_values_of_one_product) {
  program p = fused([](builder& b) {  // ViT: [S, 1, 3*H*D], scaled by a root on both sides
    value x = b.t(b.r(b.p("x", {5, 36}), {1, 5, 1, 3, 12}), {3, 1, 2, 0, 4});
    auto part = [&](std::int64_t i) {
      return b.t(b.r(b.m.add(slice{{i, 0, 0, 0, 0}, {1, 5, 1, 1, 12}, {1, 1, 1, 1, 1}}, {x}), {5, 3, 4}), {1, 0, 2});
    };
    value q = b.f(mul, b.r(part(0), {1, 3, 5, 4}), b.c(0.5)),
          k = b.f(mul, b.t(b.r(part(1), {1, 3, 5, 4}), {0, 1, 3, 2}), b.c(0.5));
    value y = product(b, softmaxed(b, product(b, q, k)), b.r(part(2), {1, 3, 5, 4}));
    b.out({b.r(b.t(y, {2, 0, 1, 3}), {5, 12})});
  });
  EXPECT_EQ(count<transpose>(p.main()), 0u) << p.str();
  EXPECT_EQ(only<attention>(p.main())->scale, 0.25);
}

TEST(fuse_attention, written_transposed) {
  program p = fused([](builder& b) {  // YOLOv10: V Pᵀ with everything [B, H, D, S], in channels_last around
    value x = b.t(b.p("x", {2, 6, 40}), {0, 2, 1});
    value parts = b.r(x, {2, 4, 10, 6});
    auto part = [&](std::int64_t at, std::int64_t n) {
      return b.m.add(slice{{0, 0, at, 0}, {2, 4, n, 6}, {1, 1, 1, 1}}, {parts});
    };
    value s = b.f(mul, product(b, part(0, 3), part(3, 3), true), b.c(0.5));
    value y = b.r(product(b, part(6, 4), softmaxed(b, s), false, true), {2, 16, 2, 3});
    b.out({b.t(y, {0, 2, 3, 1})});
  });
  EXPECT_EQ(count<transpose>(p.main()), 0u) << p.str();
}

TEST(fuse_attention, masks_that_are_added) {
  for (std::vector<dim> dims : {std::vector<dim>{2, 1, 1, 7}, {5, 7}, {7}, {2, 3, 5, 7}, {1, 3, 5, 7}, {2, 1, 5, 1}}) {
    program p = fused(plain([&](builder& b, value s) { return b.f(add, b.f(mul, s, b.c(0.5)), b.p("mask", dims)); }));
    EXPECT_EQ(count<broadcast>(p.main()), 0u) << p.str();
    fused(plain([&](builder& b, value s) { return b.f(add, {b.to(b.p("mask", dims), s.type().dims), s}); }));
  }
  // Two masks of different dims.
  program p = fused(
      plain([](builder& b, value s) { return b.f(add, b.f(add, s, b.p("m0", {3, 5, 7})), b.p("m1", {2, 1, 1, 7})); }));
  EXPECT_EQ(count<elementwise>(p.main()), 1u) << p.str();
}

TEST(fuse_attention, masks_that_select) {
  auto selecting = [](bool turned, double fill, bool negated) {
    return plain([=](builder& b, value s) {
      value seen = b.p("seen", {2, 1, 5, 7}, boolean);
      if (negated) seen = b.f(logical_not, {seen});
      value low = b.to(b.c(fill), s.type().dims), wide = b.to(seen, s.type().dims);
      return turned ? b.f(where, {wide, low, s}) : b.f(where, {wide, s, low});
    });
  };
  for (bool turned : {false, true})
    for (bool negated : {false, true}) {
      program p = fused(selecting(turned, -inf, negated));
      EXPECT_EQ(count<elementwise>(p.main()), turned == negated ? 0u : 1u) << p.str();
      p = fused(selecting(turned, -3.4028234663852886e38, negated));
      EXPECT_EQ(count<elementwise>(p.main()), 1u) << p.str();
    }
  // -100 hides some keys but not completely; a row in which all keys have -100 is uniform.
  expect_left_alone(selecting(false, -100, false));
  expect_left_alone(selecting(true, -65504, false));
}

// As PyTorch writes its attention: weights that are NaN, because no key is seen, become 0.
value guarded(builder& b, value weights, double instead = 0) {
  return b.f(where, {b.f(is_nan, {weights}), b.to(b.c(instead), weights.type().dims), weights});
}

element_type attention_mask_type(const program& p) {
  for (const instruction& i : p.main().instructions())
    if (i.op().is<attention>()) return i.inputs().at(3).type().type;
  return f32;
}

TEST(fuse_attention, rows_that_see_no_key_are_zero) {
  auto masked = [](const std::function<value(builder&, value)>& mask, double instead = 0) {
    return [=](builder& b) {
      value q = split(b, b.p("q", {2, 5, 12}), 3), k = split(b, b.p("k", {2, 7, 12}), 3),
            v = split(b, b.p("v", {2, 7, 18}), 3);
      value s = mask(b, product(b, q, b.t(k, {0, 1, 3, 2})));
      b.out({merged(b, product(b, guarded(b, softmaxed(b, s), instead), v))});
    };
  };
  auto seen = [](builder& b) {  // query 2 sees no key
    std::vector<double> all(5 * 7, 1);
    std::fill(all.begin() + 14, all.begin() + 21, 0);
    value some = b.p("some", {1, 7}, boolean), rows = b.m.add_constant(literal::from_doubles({boolean, {5, 7}}, all));
    return b.f(logical_and, {b.to(some, {5, 7}), rows});
  };
  auto added = [=](builder& b, value s) {
    return b.f(add, s, b.f(where, {seen(b), b.to(b.c(0), {5, 7}), b.to(b.c(-inf), {5, 7})}));
  };
  auto selected = [=](builder& b, value s) {
    return b.f(where, {b.to(seen(b), s.type().dims), s, b.to(b.c(-inf), s.type().dims)});
  };
  for (const std::function<value(builder&, value)>& mask : {std::function<value(builder&, value)>(added), {selected}}) {
    program p = fused(masked(mask));
    EXPECT_EQ(count<transpose>(p.main()), 0u) << p.str();
    EXPECT_EQ(count<reduce>(p.main()), 1u) << p.str();
  }
  // torch.onnx writes the lowest f32: all weights of query 2 are then equal, and none is NaN. The mask keeps that in
  // f16, too, because it is of a type with the range of f32.
  auto lowest = [=](builder& b, value s) {
    value mask = b.f(where, {seen(b), b.to(b.c(0), {5, 7}), b.to(b.c(-3.4028234663852886e38), {5, 7})});
    value rows = b.m.add_constant(literal::from_doubles({i64, {5}}, std::vector<double>{0, 1, 2, 3, 4}));
    return b.f(add, s, b.m.add(gather{0}, {mask, rows}));
  };
  program p = fused(masked(lowest));
  EXPECT_EQ(count<reduce>(p.main()), 0u) << p.str();
  EXPECT_EQ(attention_mask_type(p), bf16) << p.str();
  // Nothing is hidden without a mask, and every query sees a key of a causal one.
  auto none = [](builder&, value s) { return s; };
  p = fused(masked(none));
  EXPECT_EQ(count<elementwise>(p.main()), 0u) << p.str();
  p = fused(masked([](builder& b, value s) { return b.f(add, s, b.m.add_constant(mask_of(5, 7, 0, -inf))); }));
  EXPECT_EQ(count<elementwise>(p.main()), 0u) << p.str();
  expect_left_alone(masked(none, 0.5));
}

TEST(fuse_attention, constant_masks_of_what_comes_later) {
  // Large numbers added in f32 would round off the last digits of the scores; attention adds all terms at once.
  auto fused = [](const std::function<void(builder&)>& build) { return kiln::testing::fused(build, 1e-3); };
  auto added = [](literal mask, std::int64_t keys) {
    return plain([=](builder& b, value s) { return b.f(add, s, b.m.add_constant(mask)); }, keys);
  };
  for (double hidden : {-inf, -3.4028234663852886e38, -10000.0})
    for (std::int64_t keys : {5, 7}) {
      program p = fused(added(mask_of(5, keys, 0, hidden), keys));
      EXPECT_TRUE(only<attention>(p.main())->causal);
      EXPECT_EQ(count<constant>(p.main()), 0u) << p.str();
    }
  program p = fused(plain([](builder& b, value s) {
    return b.f(where, {b.to(b.m.add_constant(mask_of(5, 7, 1, 0, boolean)), s.type().dims), s,
                       b.to(b.c(-65504), s.type().dims)});
  }));
  EXPECT_TRUE(only<attention>(p.main())->causal);
  // With a padding mask, and with a mask that hides nothing.
  p = fused(plain([](builder& b, value s) {
    return b.f(add, b.f(add, b.f(add, s, b.m.add_constant(mask_of(5, 7, 0, -inf))), b.p("padding", {2, 1, 1, 7})),
               b.m.add_constant(mask_of(5, 7, 0, 0)));
  }));
  EXPECT_TRUE(only<attention>(p.main())->causal);
  EXPECT_EQ(count<elementwise>(p.main()), 0u) << p.str();
  // Masks that are almost causal: one more key is visible; a small penalty; fewer keys than queries.
  literal nearly = mask_of(5, 7, 0, -inf);
  auto values = nearly.to_doubles();
  values[3] = 0;
  p = fused(added(literal::from_doubles(nearly.type(), values), 7));
  EXPECT_FALSE(only<attention>(p.main())->causal);
  p = fused(added(mask_of(5, 7, 0, -5), 7));
  EXPECT_FALSE(only<attention>(p.main())->causal);
  p = fused(added(mask_of(5, 3, 0, -10000), 3));
  EXPECT_FALSE(only<attention>(p.main())->causal);
}

// Trilu of ones, as torch's exporters write is_causal: where(column - row <= k, 1, 0) == 0 selects -inf.
value triangle(builder& b, const shape& scores, double k) {
  const std::vector<dim> dims(scores.dims.end() - 2, scores.dims.end());
  value distance = b.f(sub, b.m.add(iota{i64, dims, 1}, {}), b.m.add(iota{i64, dims, 0}, {}));
  value ones = b.f(where, {b.f(less_equal, distance, b.c(k, i64)), b.to(b.c(1), dims), b.to(b.c(0), dims)});
  value hidden = b.f(equal, ones, b.c(0));
  return b.to(b.f(where, {hidden, b.to(b.c(-inf), dims), b.to(b.c(0), dims)}), scores.dims);
}

TEST(fuse_attention, masks_computed_from_positions) {
  // Without constant folding, which makes constants of small masks.
  const std::vector<pass> unfolded{simplify_arithmetic{}, simplify_movement{}, fuse_attention{}, simplify_attention{}};
  const auto is_causal = [&](const std::function<value(builder&, value)>& scores, std::int64_t keys = 7) {
    program p = transformed(plain(scores, keys), unfolded, 1e-3);
    EXPECT_EQ(count<attention>(p.main()), 1u) << p.str();
    const bool causal = only<attention>(p.main())->causal;
    if (causal) {
      EXPECT_EQ(count<elementwise>(p.main()), 0u) << p.str();
    }
    return causal;
  };
  EXPECT_TRUE(is_causal([](builder& b, value s) { return b.f(add, s, triangle(b, s.type(), 2)); }));
  EXPECT_TRUE(is_causal([](builder& b, value s) { return b.f(add, s, triangle(b, s.type(), 0)); }, 5));
  // One key more or less than what came before, and more queries than keys.
  EXPECT_FALSE(is_causal([](builder& b, value s) { return b.f(add, s, triangle(b, s.type(), 3)); }));
  EXPECT_FALSE(is_causal([](builder& b, value s) { return b.f(add, s, triangle(b, s.type(), 1)); }));
  EXPECT_FALSE(is_causal([](builder& b, value s) { return b.f(add, s, triangle(b, s.type(), 0)); }));
  // Ranges in two directions, as transformers compares them: kept where not (row + 2 < column).
  const auto compared = [](std::int64_t past, std::int64_t row_axis) {
    return [=](builder& b, value s) {
      value rows = b.f(add, b.m.add(iota{i64, {5}, 0}, {}), b.c(static_cast<double>(past), i64));
      value a = b.to(b.r(rows, row_axis ? std::vector<dim>{1, 5} : std::vector<dim>{5, 1}), {row_axis ? 5 : 5, 5});
      value columns = b.to(b.m.add(iota{i64, {5}, 0}, {}), {5, 5});
      value kept = b.f(logical_not, std::vector{b.f(less, {a, columns})});
      return b.f(where, {b.to(kept, s.type().dims), s, b.to(b.c(-inf), s.type().dims)});
    };
  };
  EXPECT_TRUE(is_causal(compared(0, 0), 5));
  EXPECT_FALSE(is_causal(compared(1, 0), 5));
  EXPECT_FALSE(is_causal(compared(0, 1), 5));  // both ranges along the keys
}

// Positions that are data: the mask compares the keys' numbers with a limit of each query.
TEST(fuse_attention, masks_that_compare_with_limits) {
  const auto masked = [](const std::vector<dim>& limits, bool turned, bool negated, bool added) {
    return plain([=](builder& b, value s) {
      value limit = b.to(b.p("limits", limits, i64), {5, 7});
      value columns = b.m.add_constant(literal::from_doubles({i64, {1, 7}}, std::vector<double>{0, 1, 2, 3, 4, 5, 6}));
      columns = b.to(columns, {5, 7});
      value seen = turned ? b.f(greater_equal, {limit, columns}) : b.f(less_equal, {columns, limit});
      if (negated) seen = b.f(logical_not, {turned ? b.f(less, {limit, columns}) : b.f(greater, {columns, limit})});
      if (added) {
        value zeros = b.to(b.c(0), {5, 7}), low = b.to(b.c(-inf), {5, 7});
        return b.f(add, s, b.f(where, {seen, zeros, low}));
      }
      seen = b.to(b.r(seen, {1, 1, 5, 7}), s.type().dims);
      return b.f(where, {seen, s, b.to(b.c(-inf), s.type().dims)});
    });
  };
  for (const std::vector<dim>& limits : {std::vector<dim>{5, 1}, {1}})
    for (const bool turned : {false, true})
      for (const bool negated : {false, true})
        for (const bool added : {false, true}) {
          program p = fused(masked(limits, turned, negated, added));
          for (const instruction& i : p.main().instructions())
            if (i.op().is<attention>()) {
              ASSERT_EQ(i.inputs().size(), 4u);
              EXPECT_TRUE(find_prefix_mask(i.inputs()[3])) << p.str();
            }
        }
}

// torch's older exporter: products of f16, softmax and values in f32.
TEST(fuse_attention, scores_and_values_in_f32_of_halves) {
  const auto exported = [](bool rounded) {
    return [=](builder& b) {
      value q = b.p("q", {2, 3, 5, 4}, f16), k = b.p("k", {2, 3, 7, 4}, f16), v = b.p("v", {2, 3, 7, 6}, f16);
      value scores = as(b, b.m.add(dot{false, true, f16}, {q, k}), f32);
      value y = product(b, softmaxed(b, b.f(add, scores, b.m.add_constant(mask_of(5, 7, 0, -inf)))), as(b, v, f32));
      b.out({rounded ? as(b, y, f16) : y});
    };
  };
  // A result in f32 stays as exact as it was; one that is rounded comes from an attention of halves.
  for (const bool rounded : {false, true}) {
    program p = fused(exported(rounded), 5e-3);
    const attention* found = only<attention>(p.main());
    EXPECT_TRUE(found->causal);
    EXPECT_EQ(count<convert>(p.main()), rounded ? 0u : 3u) << p.str();
  }
}

TEST(fuse_attention, heads_that_share_keys) {
  for (std::int64_t queries : {1, 3}) {
    program p = fused([=](builder& b) {  // Llama
      value q = b.p("q", {2, 6, queries, 4});
      auto repeated = [&](value x) {
        return b.r(b.m.add(broadcast{{2, 2, 3, 5, 4}}, {b.r(x, {2, 2, 1, 5, 4})}), {2, 6, 5, 4});
      };
      value k = repeated(b.p("k", {2, 2, 5, 4})), v = repeated(b.p("v", {2, 2, 5, 4}));
      value s = b.f(mul, product(b, q, b.t(k, {0, 1, 3, 2})), b.c(0.5));
      value hidden = b.to(b.f(logical_not, {b.p("seen", {1, 1, queries, 5}, boolean)}), s.type().dims);
      s = b.f(where, {hidden, b.to(b.c(-inf), s.type().dims), s});
      b.out({merged(b, product(b, softmaxed(b, s), v))});
    });
    EXPECT_EQ(count<broadcast>(p.main()), 0u) << p.str();
    EXPECT_EQ(count<elementwise>(p.main()), 0u) << p.str();
    EXPECT_EQ(count<transpose>(p.main()), 0u) << p.str();
  }
}

TEST(fuse_attention, conversions_around_the_softmax) {
  program p = fused(
      [](builder& b) {
        value q = b.p("q", {2, 3, 5, 4}, f16), k = b.p("k", {2, 3, 7, 4}, f16), v = b.p("v", {2, 3, 7, 6}, f16);
        value s = b.f(mul, as(b, product(b, q, k, false, true), f32), b.c(0.5));
        b.out({product(b, as(b, softmaxed(b, s), f16), v)});
      },
      4e-3);
  EXPECT_EQ(count<convert>(p.main()), 0u) << p.str();
  p = fused(
      [](builder& b) {
        value q = as(b, b.p("q", {2, 3, 5, 4}, f16), f32), k = as(b, b.p("k", {2, 3, 7, 4}, f16), f32),
              v = b.p("v", {2, 3, 7, 6}, f16);
        b.out({product(b, as(b, softmaxed(b, product(b, q, k, false, true)), f16), v)});
      },
      4e-3);
  EXPECT_EQ(count<convert>(p.main()), 0u) << p.str();
  // Computed in f32 on purpose, so the precision must not change.
  p = fused([](builder& b) {
    value q = as(b, b.p("q", {2, 3, 5, 4}, f16), f32), k = as(b, b.p("k", {2, 3, 7, 4}, f16), f32),
          v = as(b, b.p("v", {2, 3, 7, 6}, f16), f32);
    b.out({product(b, softmaxed(b, product(b, q, k, false, true)), v)});
  });
  EXPECT_EQ(count<convert>(p.main()), 3u) << p.str();
}

TEST(fuse_attention, heads_in_one_axis_with_the_batch) {
  program p = fused([](builder& b) {
    value q = b.p("q", {6, 5, 4}), k = b.p("k", {6, 4, 7}), v = b.p("v", {6, 7, 4});
    b.out({product(b, softmaxed(b, product(b, q, k)), v)});
  });
  EXPECT_EQ(only<attention>(p.main())->key_layout, head_layout::heads_first);
}

TEST(fuse_attention, near_misses_stay) {
  auto q = [](builder& b) { return b.p("q", {2, 3, 7, 4}); };
  auto k = [](builder& b) { return b.p("k", {2, 3, 7, 4}); };
  auto v = [](builder& b) { return b.p("v", {2, 3, 7, 6}); };
  auto scores = [&](builder& b) { return product(b, q(b), k(b), false, true); };
  // Not attention: softmax over the queries or over heads; the logarithm of a softmax.
  expect_left_alone([&](builder& b) { b.out({product(b, softmaxed(b, scores(b), 2), v(b))}); });
  expect_left_alone([&](builder& b) { b.out({product(b, softmaxed(b, scores(b), 1), v(b))}); });
  expect_left_alone([&](builder& b) { b.out({product(b, b.m.add(softmax{-1, true}, {scores(b)}), v(b))}); });
  // Not attention: weights and values are multiplied in the wrong order.
  expect_left_alone([&](builder& b) { b.out({product(b, softmaxed(b, scores(b)), v(b), true)}); });
  expect_left_alone([&](builder& b) { b.out({product(b, b.t(v(b), {0, 1, 3, 2}), softmaxed(b, scores(b)))}); });
  // Scores or weights that have other readers.
  expect_left_alone([&](builder& b) {
    value s = scores(b);
    b.out({product(b, softmaxed(b, s), v(b)), s});
  });
  expect_left_alone([&](builder& b) {
    value w = softmaxed(b, scores(b));
    b.out({product(b, w, v(b)), b.f(exp, {w})});
  });
  // Another operation between the products.
  expect_left_alone([&](builder& b) { b.out({product(b, softmaxed(b, b.f(tanh, {scores(b)})), v(b))}); });
  expect_left_alone(
      [&](builder& b) { b.out({product(b, softmaxed(b, b.f(mul, {scores(b), b.p("bias", {2, 3, 7, 7})})), v(b))}); });
  // A factor that is applied after the mask was added applies to the mask, too.
  expect_left_alone([&](builder& b) {
    b.out({product(b, softmaxed(b, b.f(mul, b.f(add, scores(b), b.p("mask", {7})), b.c(0.5))), v(b))});
  });
  // A mask whose shape does not broadcast to the scores without a reshape.
  expect_left_alone([&](builder& b) {
    value s = b.r(scores(b), {6, 7, 7});
    b.out({product(b, softmaxed(b, b.r(b.f(add, s, b.p("mask", {6, 7, 7})), {2, 3, 7, 7})), v(b))});
  });
  // A reshape that splits rows.
  expect_left_alone([&](builder& b) {
    value s = b.r(product(b, q(b), b.p("k", {2, 3, 8, 4}), false, true), {2, 3, 14, 4});
    b.out({b.m.add(dot{}, {b.r(softmaxed(b, s), {2, 3, 7, 8}), b.p("v", {2, 3, 8, 6})})});
  });
}

TEST(simplify_attention, keeps_other_transposes) {
  auto build = [](builder& b) {
    value q = b.t(b.p("q", {3, 2, 5, 4}), {1, 0, 2, 3}), k = b.p("k", {2, 3, 7, 4}),
          v = b.t(b.p("v", {2, 3, 6, 7}), {0, 1, 3, 2});
    b.out({b.t(b.m.add(attention{}, {q, k, v}), {0, 1, 3, 2})});
  };
  program p = transformed(build, {simplify_attention{}});
  EXPECT_EQ(count<transpose>(p.main()), 3u) << p.str();
}

TEST(simplify_attention, a_result_that_is_read_twice_keeps_its_layout) {
  auto build = [](builder& b) {
    value y = b.m.add(attention{}, {b.p("q", {2, 3, 5, 4}), b.p("k", {2, 3, 7, 4}), b.p("v", {2, 3, 7, 4})});
    b.out({b.t(y, {0, 2, 1, 3}), b.f(exp, {y})});
  };
  program p = transformed(build, {simplify_attention{}});
  EXPECT_EQ(only<attention>(p.main())->output_layout, head_layout::heads_first);
}

}  // namespace
}  // namespace kiln::testing
