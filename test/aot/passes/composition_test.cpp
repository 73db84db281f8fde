#include "aot/passes/compose_contractions.hpp"
#include "aot/passes/constant_folding.hpp"
#include "aot/passes/merge_parallel_contractions.hpp"
#include "aot/passes/simplify_arithmetic.hpp"
#include "aot/passes/simplify_contractions.hpp"
#include "aot/passes/simplify_movement.hpp"
#include "aot/rewrite_log.hpp"
#include "test/aot/passes/passes_test.hpp"

namespace kiln::testing {
namespace {

using enum scalar_function;

// A convolution with `filters` outputs, followed by a bias if `bias` is set.
struct layer {
  std::int64_t filters, window, groups = 1, stride = 1, pad = 0, dilation = 1;
  bool bias = false;
};

value add_layer(builder& b, value x, const layer& l, unsigned seed) {
  convolution op{{l.stride, l.stride}, {l.dilation, l.dilation}, {l.pad, l.pad}, {l.pad, l.pad}, l.groups};
  value y = b.m.add(op, {x, b.w({l.filters, x.type().dims[1].value() / l.groups, l.window, l.window}, seed)});
  return l.bias ? b.f(add, y, b.w({l.filters, 1, 1}, seed + 50)) : y;
}

struct composition_case {
  std::string name;
  std::int64_t channels;
  layer inner, outer;
  // Groups of the composition; 0 means that it is refused.
  std::int64_t groups;
};

class compositions : public ::testing::TestWithParam<composition_case> {};

TEST_P(compositions, are_exact_or_refused) {
  const auto& c = GetParam();
  auto build = [&](builder& b) {
    value x = b.p("x", {2, c.channels, 13, 11});
    b.out({b.f(relu, {add_layer(b, add_layer(b, x, c.inner, 1), c.outer, 2)})});
  };
  program p = transformed(build, {compose_contractions{}}, 1e-4);
  if (c.groups == 0) {
    EXPECT_EQ(count<convolution>(p.main()), 2u) << p.str();
    return;
  }
  ASSERT_EQ(count<convolution>(p.main()), 1u) << p.str();
  EXPECT_EQ(only<convolution>(p.main())->groups, c.groups);
  EXPECT_EQ(only<convolution>(p.main())->strides[0], c.inner.stride * c.outer.stride);
}

INSTANTIATE_TEST_SUITE_P(
    table, compositions,
    ::testing::Values(
        // k×k, then 1×1
        composition_case{"plain", 4, {16, 3}, {4, 1}, 1},
        composition_case{"inner_bias", 4, {16, 3, 1, 1, 0, 1, true}, {4, 1}, 1},
        composition_case{"both_biases", 4, {16, 3, 1, 1, 0, 1, true}, {4, 1, 1, 1, 0, 1, true}, 1},
        composition_case{"inner_padding_and_bias", 4, {16, 3, 1, 1, 1, 1, true}, {4, 1}, 1},
        composition_case{"inner_stride", 4, {16, 3, 1, 2, 1}, {4, 1}, 1},
        composition_case{"outer_stride", 4, {8, 3, 1, 1, 1, 1, true}, {8, 1, 1, 2}, 1},
        composition_case{"both_strides", 4, {16, 3, 1, 2, 0}, {8, 1, 1, 3}, 1},
        composition_case{"inner_dilation", 4, {16, 3, 1, 1, 2, 2, true}, {4, 1}, 1},
        composition_case{"same_groups", 8, {32, 3, 4, 1, 1, 1, true}, {8, 1, 4}, 4},
        composition_case{"groups_with_a_common_divisor", 12, {48, 3, 4, 1, 1}, {12, 1, 6, 1, 0, 1, true}, 2},
        composition_case{"inner_groups", 4, {32, 1, 2, 1, 0, 1, true}, {4, 1}, 1},
        composition_case{"outer_groups", 4, {32, 1}, {8, 1, 4}, 1},
        composition_case{"both_depthwise", 6, {6, 3, 6, 1, 1, 1, true}, {6, 1, 6}, 6},
        composition_case{"depthwise_multiplier", 4, {8, 3, 4, 1, 1}, {8, 1, 8, 1, 0, 1, true}, 4},
        // 1×1, then k×k
        composition_case{"window_second", 4, {16, 1}, {4, 3, 1, 1, 0, 1, true}, 1},
        composition_case{"window_second_with_bias", 4, {16, 1, 1, 1, 0, 1, true}, {4, 3, 1, 2, 0, 2}, 1},
        composition_case{"window_second_padded", 4, {16, 1}, {4, 3, 1, 2, 1, 2}, 1},
        composition_case{"first_in_strides", 4, {16, 1, 1, 2}, {4, 3}, 1},
        composition_case{"first_padded", 4, {16, 1, 1, 1, 2}, {4, 3, 1, 1, 1}, 1},
        // Not exact, not supported, or more work.
        composition_case{"padding_after_bias", 4, {16, 1, 1, 1, 0, 1, true}, {4, 3, 1, 1, 1}, 0},
        composition_case{"padding_after_window", 4, {16, 3}, {4, 1, 1, 1, 1}, 0},
        composition_case{"padding_after_strides", 4, {16, 1, 1, 2}, {4, 3, 1, 1, 1}, 0},
        composition_case{"two_windows", 4, {16, 3}, {4, 3}, 0}, composition_case{"bottleneck", 64, {2, 1}, {64, 1}, 0},
        composition_case{"depthwise_then_pointwise", 64, {64, 3, 64, 1, 1}, {64, 1}, 0},
        composition_case{"pointwise_then_depthwise", 32, {32, 1}, {32, 3, 32}, 0}),
    [](const auto& info) { return info.param.name; });

std::vector<pass> compose() {
  return {until_stable{"compose", {compose_contractions{}, constant_folding{}, simplify_arithmetic{}}}};
}

TEST(composition, is_refused_where_the_intermediate_result_is_used) {
  auto build = [](builder& b) {
    value between = add_layer(b, b.p("x", {1, 4, 9, 9}), {16, 3}, 1);
    b.out({add_layer(b, between, {4, 1}, 2), b.f(relu, {between})});
  };
  EXPECT_EQ(count<convolution>(transformed(build, compose()).main()), 2u);
}

TEST(composition, is_refused_through_another_pad_value) {
  for (double fill : {0.0, 1.5}) {
    auto build = [fill](builder& b) {
      value between = add_layer(b, b.p("x", {1, 4, 9, 9}), {16, 1}, 1);
      pad border{{0, 0, 1, 1}, {0, 0, 1, 1}, pad_mode::constant_, fill};
      b.out({add_layer(b, b.m.add(border, {between}), {4, 3}, 2)});
    };
    program p = transformed(build, {simplify_contractions{}, compose_contractions{}}, 1e-4);
    EXPECT_EQ(count<convolution>(p.main()), fill == 0 ? 1u : 2u) << p.str();
  }
}

TEST(composition, takes_chains_of_three) {
  auto build = [](builder& b) {
    value x = b.p("x", {1, 4, 9, 9});
    x = add_layer(b, x, {16, 1, 1, 1, 0, 1, true}, 1);
    x = add_layer(b, x, {16, 3, 1, 1, 0, 1, true}, 2);
    b.out({add_layer(b, x, {4, 1, 1, 1, 0, 1, true}, 3)});
  };
  program p = transformed(build, compose(), 1e-3);
  EXPECT_EQ(count<convolution>(p.main()), 1u) << p.str();
}

TEST(composition, takes_separable_windows_in_groups) {
  auto build = [](builder& b) {
    value x = b.p("x", {1, 8, 9, 9});
    value y = b.m.add(convolution{{1, 1}, {1, 1}, {1, 0}, {1, 0}, 1}, {x, b.w({64, 8, 3, 1}, 1)});
    b.out({b.m.add(convolution{{1, 1}, {1, 1}, {0, 0}, {0, 0}, 1}, {y, b.w({8, 64, 1, 3}, 2)})});
  };
  program p = transformed(build, compose(), 1e-3);
  EXPECT_EQ(count<convolution>(p.main()), 1u) << p.str();
}

TEST(composition, multiplies_constant_matrices_where_that_saves_work) {
  for (bool first : {false, true})
    for (bool second : {false, true})
      for (std::int64_t between : {3, 64}) {
        auto build = [&](builder& b) {
          value x = b.p("x", {5, 24});
          value w = first ? b.w({between, 24}) : b.w({24, between}),
                v = second ? b.w({20, between}, 2) : b.w({between, 20}, 2);
          value y = b.f(add, b.m.add(dot{.transpose_b = first}, {x, w}), b.w({between}, 3));
          b.out({b.m.add(dot{.transpose_b = second}, {y, v})});
        };
        program p = transformed(build, compose(), 1e-4);
        EXPECT_EQ(count<dot>(p.main()), between == 3 ? 2u : 1u) << p.str();
      }
}

TEST(composition, works_with_open_dimensions) {
  program p;
  builder b(p.main());
  value x = b.p("x", {dim::symbol("n"), 4, dim::symbol("h"), 9});
  b.out({add_layer(b, add_layer(b, x, {16, 3}, 1), {4, 1}, 2)});
  run_passes(p, compose());
  p.validate();
  EXPECT_EQ(count<convolution>(p.main()), 1u) << p.str();
}

TEST(composition, says_what_it_did_and_why_not) {
  program p;
  builder b(p.main());
  value x = b.p("x", {1, 4, 9, 9});
  b.out({add_layer(b, add_layer(b, x, {16, 3}, 1), {4, 1}, 2), add_layer(b, add_layer(b, x, {2, 1}, 3), {64, 1}, 4)});
  rewrite_log log;
  run_passes(p, {compose_contractions{&log}});
  ASSERT_EQ(log.rewrites().size(), 1u);
  EXPECT_GT(log.rewrites().begin()->second.saved.flop, 0);
  ASSERT_EQ(log.refusals().size(), 1u);
  EXPECT_EQ(log.refusals().begin()->first.second, "the composition would cost more");
}

// --- sums of convolutions of one image

std::vector<pass> merge() {
  return {until_stable{"simplify",
                       {constant_folding{}, simplify_arithmetic{}, simplify_movement{}, simplify_contractions{}}},
          merge_parallel_contractions{}};
}

struct branches_case {
  std::string name;
  std::int64_t channels;
  std::vector<layer> branches;
  bool scaled_identity;
  // Number of convolutions that are left.
  std::size_t convolutions;
};

class branches : public ::testing::TestWithParam<branches_case> {};

TEST_P(branches, become_one_convolution_if_that_is_exact) {
  const auto& c = GetParam();
  auto build = [&](builder& b) {
    value x = b.p("x", {2, c.channels, 9, 11}), sum;
    unsigned seed = 1;
    for (const layer& l : c.branches) {
      value y = add_layer(b, x, l, seed++);
      sum = sum ? b.f(add, {sum, y}) : y;
    }
    if (c.scaled_identity)
      sum = b.f(add, {sum, b.f(add, b.f(mul, x, b.w({c.channels, 1, 1}, 21)), b.w({c.channels, 1, 1}, 22))});
    b.out({b.f(relu, {sum})});
  };
  program p = transformed(build, merge(), 1e-4);
  EXPECT_EQ(count<convolution>(p.main()), c.convolutions) << p.str();
}

INSTANTIATE_TEST_SUITE_P(
    table, branches,
    ::testing::Values(
        branches_case{"repvgg", 6, {{6, 3, 1, 1, 1, 1, true}, {6, 1, 1, 1, 0, 1, true}}, true, 1},
        branches_case{"repvgg_in_strides", 6, {{8, 3, 1, 2, 1, 1, true}, {8, 1, 1, 2, 0, 1, true}}, false, 1},
        branches_case{"mobileone_depthwise", 6, {{6, 3, 6, 1, 1}, {6, 3, 6, 1, 1}, {6, 1, 6, 1, 0, 1, true}}, true, 1},
        branches_case{"different_windows", 6, {{6, 7, 6, 1, 3}, {6, 3, 6, 1, 1}}, false, 1},
        branches_case{"dilated", 4, {{4, 3, 1, 1, 2, 2}, {4, 1}}, false, 1},
        branches_case{"dilations_differ", 4, {{4, 3, 1, 1, 2, 2}, {4, 3, 1, 1, 1}}, false, 2},
        branches_case{"strides_differ_in_result", 4, {{4, 3, 1, 1, 1}, {4, 3, 1, 1, 1}, {4, 5, 1, 1, 2}}, false, 1},
        branches_case{"groups_cost_more", 8, {{8, 3, 8, 1, 1}, {8, 3, 1, 1, 1}}, false, 1},
        branches_case{"dense_point_and_depthwise_window", 32, {{32, 5, 32, 1, 2}, {32, 1}}, false, 2}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kiln::testing
