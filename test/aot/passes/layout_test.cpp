#include "aot/passes/channels_last.hpp"
#include "aot/passes/common_subexpressions.hpp"
#include "aot/passes/constant_folding.hpp"
#include "aot/passes/simplify_arithmetic.hpp"
#include "aot/passes/simplify_contractions.hpp"
#include "aot/passes/simplify_movement.hpp"
#include "aot/passes/sink_reshapes.hpp"
#include "aot/passes/sink_transposes.hpp"
#include "test/aot/passes/passes_test.hpp"

namespace kiln::testing {
namespace {

using enum scalar_function;

std::vector<pass> to_channels_last() {
  until_stable simplify{"simplify",
                        {constant_folding{}, simplify_arithmetic{}, simplify_movement{}, simplify_contractions{},
                         common_subexpressions{}}};
  return {sink_reshapes{}, channels_last{}, sink_transposes{},
          simplify,        sink_reshapes{}, sink_transposes{.ties = false},
          simplify};
}

value conv(builder& b, value x, std::int64_t filters, unsigned seed, std::int64_t groups = 1) {
  return b.m.add(convolution{{1, 1}, {1, 1}, {1, 1}, {1, 1}, groups},
                 {x, b.w({filters, x.type().dims[1].value() / groups, 3, 3}, seed)});
}

// Operations between a first and a second convolution. One transpose must remain at each end of the model and none in
// between.
struct layout_case {
  std::string name;
  std::function<value(builder&, value)> between;  // from [2, 6, 8, 4], channels first
  std::size_t transposes = 2;
};

class layout : public ::testing::TestWithParam<layout_case> {};

TEST_P(layout, has_no_transposes_inside) {
  auto build = [](builder& b) {
    value y = GetParam().between(b, conv(b, b.p("x", {2, 3, 8, 4}), 6, 1));
    b.out({conv(b, y, 5, 2)});
  };
  program p = transformed(build, to_channels_last());
  EXPECT_EQ(count<transpose>(p.main()), GetParam().transposes) << p.str();
  for (const instruction& i : p.main().instructions())
    if (const auto* c = i.op().get_if<convolution>()) {
      EXPECT_EQ(c->layout, tensor_layout::channels_last);
    }
}

value whole(builder& b, value v, std::vector<std::int64_t> starts, std::vector<dim> lengths) {
  return b.m.add(slice{std::move(starts), std::move(lengths), std::vector<std::int64_t>(v.type().rank(), 1)}, {v});
}

INSTANTIATE_TEST_SUITE_P(
    models, layout,
    ::testing::Values(
        layout_case{"bias_and_relu", [](builder& b, value x) { return b.f(relu, {b.f(add, x, b.w({6, 1, 1}))}); }},
        layout_case{"residual", [](builder& b, value x) { return b.f(add, {conv(b, b.f(relu, {x}), 6, 9), x}); }},
        layout_case{"depthwise", [](builder& b, value x) { return conv(b, x, 6, 9, 6); }},
        layout_case{"grouped", [](builder& b, value x) { return conv(b, x, 9, 9, 3); }},
        layout_case{"transposed_convolution",
                    [](builder& b, value x) {
                      return b.m.add(transposed_convolution{{2, 2}, {1, 1}, {0, 1}, {1, 0}, {1, 0}, 2},
                                     {x, b.w({6, 4, 3, 3})});
                    }},
        layout_case{"pooling",
                    [](builder& b, value x) {
                      return b.m.add(pooling{pooling_kind::max, {3, 2}, {2, 1}, {1, 1}, {1, 0}, {1, 0}}, {x});
                    }},
        layout_case{"concat",
                    [](builder& b, value x) { return b.m.add(concat{1}, {x, b.f(relu, {x}), conv(b, x, 2, 9)}); }},
        layout_case{"concat_with_constant",
                    [](builder& b, value x) { return b.m.add(concat{1}, {x, b.w({2, 3, 8, 4}, 9)}); }},
        layout_case{
            "pad_reflect",
            [](builder& b, value x) { return b.m.add(pad{{0, 0, 1, 2}, {0, 0, 3, 0}, pad_mode::reflect}, {x}); }},
        layout_case{"slice_channels",
                    [](builder& b, value x) {
                      return b.f(mul,
                                 {whole(b, x, {0, 0, 0, 0}, {2, 3, 8, 4}), whole(b, x, {0, 3, 0, 0}, {2, 3, 8, 4})});
                    }},
        layout_case{"resize", [](builder& b, value x) { return b.m.add(resize{{2, 6, 16, 8}, {1, 1, 2, 2}}, {x}); }},
        layout_case{"softmax_over_channels", [](builder& b, value x) { return b.m.add(softmax{1}, {x}); }},
        layout_case{
            "instance_norm",
            [](builder& b, value x) { return b.f(mul, b.m.add(normalize{{2, 3}, 1e-3}, {x}), b.w({6, 1, 1})); }},
        layout_case{"group_norm",
                    [](builder& b, value x) {
                      return b.f(mul, b.r(b.m.add(normalize{{2}, 1e-3}, {b.r(x, {2, 3, 64})}), {2, 6, 8, 4}),
                                 b.w({6, 1, 1}));
                    }},
        layout_case{"layer_norm_behind_transposes",
                    [](builder& b, value x) {
                      return b.t(b.m.add(normalize{{3}, 1e-3}, {b.t(x, {0, 2, 3, 1})}), {0, 3, 1, 2});
                    }},
        layout_case{"squeeze_excite",
                    [](builder& b, value x) {
                      value s = b.m.add(reduce{reduction_kind::mean, {2, 3}, true}, {x});
                      value gate =
                          b.f(sigmoid,
                              {b.f(add, b.m.add(convolution{{1, 1}, {1, 1}, {0, 0}, {0, 0}}, {s, b.w({6, 6, 1, 1})}),
                                   b.w({6, 1, 1}))});
                      return b.f(mul, {x, b.to(gate, {2, 6, 8, 4})});
                    }},
        layout_case{"spatial_sum_dropped_and_put_back",
                    [](builder& b, value x) {
                      value s = b.m.add(reduce{reduction_kind::max, {3}, false}, {x});
                      return b.f(add, {x, b.to(b.r(s, {2, 6, 8, 1}), {2, 6, 8, 4})});
                    }},
        layout_case{
            "channel_shuffle",
            [](builder& b, value x) { return b.r(b.t(b.r(x, {2, 3, 2, 8, 4}), {0, 2, 1, 3, 4}), {2, 6, 8, 4}); }, 3},
        layout_case{
            "gather_of_channels",
            [](builder& b,
               value x) { return b.m.add(gather{1}, {x, b.m.add_constant(literal::from_int64({5, 0, 3, 1}))}); },
            2}),
    [](const auto& info) { return info.param.name; });

TEST(layout_ends, flattening_after_global_pooling_needs_no_transpose) {
  auto build = [](builder& b) {
    value y = b.m.add(reduce{reduction_kind::mean, {2, 3}, true}, {conv(b, b.p("x", {2, 3, 8, 4}), 6, 1)});
    b.out({b.m.add(dot{}, {b.r(y, {2, 6}), b.w({6, 5}, 3)})});
  };
  EXPECT_EQ(count<transpose>(transformed(build, to_channels_last()).main()), 1u);
}

TEST(layout_ends, patches_become_tokens_without_transpose) {
  auto build = [](builder& b) {
    value y = b.m.add(convolution{{2, 2}, {1, 1}, {0, 0}, {0, 0}}, {b.p("x", {1, 3, 8, 4}), b.w({6, 3, 2, 2})});
    b.out({b.t(b.r(y, {1, 6, 8}), {0, 2, 1})});
  };
  EXPECT_EQ(count<transpose>(transformed(build, to_channels_last()).main()), 1u);
}

// As exporters of decoders write it: keys of this step join those of earlier steps, and both are an output.
TEST(layout_ends, a_cache_is_joined_as_it_is_stored) {
  auto build = [](builder& b) {
    value past = b.p("past", {1, 2, 5, 4}), keys = b.t(b.p("keys", {1, 3, 2, 4}), {0, 2, 1, 3});
    value present = b.m.add(concat{2}, {past, keys});
    b.out({present, b.f(exp, {present})});
  };
  program p = transformed(build, {sink_transposes{}});
  ASSERT_EQ(count<transpose>(p.main()), 1u) << p.str();
  EXPECT_TRUE(p.main().outputs()[0].producer->op().is<concat>());
}

TEST(layout_rank, one_and_three_spatial_axes) {
  auto build = [](builder& b) {
    value x = b.p("x", {2, 4, 9}), v = b.p("v", {1, 2, 3, 4, 5});
    value y = b.m.add(convolution{{2}, {1}, {1}, {0}, 2}, {x, b.w({6, 2, 3})});
    value z = b.m.add(pooling{pooling_kind::average, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, {1, 0, 0}, {0, 0, 1}}, {v});
    b.out({b.f(exp, {y}), z});
  };
  EXPECT_EQ(count<transpose>(transformed(build, to_channels_last()).main()), 4u);
}

}  // namespace
}  // namespace kiln::testing
