// Several results of one kernel: which values share one, and which are computed once more instead.
#include "test/aot/passes/formed.hpp"

namespace kiln::testing {
namespace {

using enum scalar_function;

// Two results of the same dims that read the same tensor at the same places are one kernel.
TEST(formation_sharing, pointwise_results_of_one_operand_share_a_kernel) {
  formed f = form([](builder& b) {
    value x = b.f(exp, {b.p("x", {6, 9})});
    value left = b.f(mul, x, b.p("a", {6, 9})), right = b.f(add, x, b.p("b", {6, 9}));
    b.out({b.f(tanh, {b.t(left, {1, 0})}), b.t(right, {1, 0}), left, right, x});
  });
  std::size_t of_these_dims = 0;
  for (const formed_kernel& k : f.kernels)
    of_these_dims += k.fusion->outputs()[0].type().dims == std::vector<dim>{6, 9};
  EXPECT_EQ(of_these_dims, 1u);
}

TEST(formation_sharing, several_results_of_one_operation) {
  auto f = form([](builder& b) {
    value x = b.p("x", {3, 9});
    value best = b.m.add(top_k{4, -1, true}, {b.f(neg, {x})});
    b.out({b.f(abs, {best}), b.m.add(gather_elements{1}, {x, value{best.producer, 1}})});
  });
  EXPECT_EQ(f.symbols.size(), 3u);
}

// The kernel computes each element for its rank, also of a tensor that is flattened first.
TEST(formation_sharing, top_k_computes_what_it_ranks) {
  auto f = form([](builder& b) {
    value scores = b.f(sigmoid, {b.p("x", {1, 7, 12})});
    value places = b.m.add(top_k{5, 1, true}, {b.p("y", {1, 7})});
    value rows = b.to(b.r({places.producer, 1}, {1, 5, 1}), {1, 5, 12});
    value best = b.m.add(top_k{6, 1, true}, {b.r(b.m.add(gather_elements{1}, {scores, rows}), {1, 60})});
    b.out({best, {best.producer, 1}});
  });
  EXPECT_EQ(f.symbols, (names{"top_k", "sigmoid_gather_elements_top_k"}));
}

// A stream that is normalized and also read by others is written by the normalization's kernel.
TEST(formation_sharing, rows_are_written_by_the_kernel_that_normalizes_them) {
  const auto form_stream = [](const std::function<value(builder&)>& stream) {
    return form(
        [&](builder& b) {
          value x = stream(b);
          b.out({b.f(add, {b.m.add(dot{}, {b.m.add(normalize{{1}, 1e-3}, {b.f(neg, {x})}), b.w({64, 64})}), x}), x});
        },
        1e-5);
  };
  const formed looked_up = form_stream(
      [](builder& b) { return b.m.add(gather{0}, {b.w({9, 64}, 5), b.p("ids", {900}, element_type::i64)}); });
  EXPECT_EQ(looked_up.symbols, (names{"gather_neg_normalize", "dot_add"}));
  const formed added = form_stream([](builder& b) { return b.f(add, b.p("x", {900, 64}), b.p("y", {900, 64})); });
  EXPECT_EQ(added.symbols, (names{"add_neg_normalize", "dot_add"}));
  EXPECT_EQ(added.kernels[0].fusion->outputs().size(), 2u);
  // Expensive elements of many rows are not computed twice.
  const formed expensive = form_stream([](builder& b) { return b.f(exp, {b.p("x", {900, 64})}); });
  EXPECT_EQ(expensive.symbols, (names{"map_exp", "neg_normalize", "dot_add"}));
  // Nor are they where a cheap operation is the last one.
  const formed chain =
      form_stream([](builder& b) { return b.f(add, b.f(exp, {b.p("x", {900, 64})}), b.p("y", {900, 64})); });
  EXPECT_EQ(chain.symbols, (names{"map_exp_add", "neg_normalize", "dot_add"}));
}

// A residual that was rounded is stored as it was rounded: a normalization and the next sum widen it.
TEST(formation_sharing, rounded_results_are_widened_by_their_readers) {
  const auto wide = [](builder& b, value v) { return b.m.add(convert{element_type::f32}, {v}); };
  const auto half = [](builder& b, value v) { return b.m.add(convert{element_type::f16}, {v}); };
  const formed f = form(
      [&](builder& b) {
        value stream = wide(b, b.p("stream", {700, 64}, element_type::f16));
        for (int layer = 0; layer < 2; ++layer) {
          const value rows = half(b, b.m.add(normalize{{1}, 1e-3, false}, {stream}));
          const value y = b.m.add(dot{.type = element_type::f16},
                                  {rows, b.p("w" + std::to_string(layer), {64, 64}, element_type::f16)});
          stream = wide(b, half(b, b.f(add, {stream, wide(b, y)})));
        }
        b.out({b.m.add(normalize{{1}, 1e-3, false}, {stream})});
      },
      5e-3);
  EXPECT_EQ(f.symbols, (names{"convert_normalize_convert", "convert_dot_convert_add_convert",
                              "convert_normalize_convert", "convert_dot_convert_add_convert", "convert_normalize"}));
  EXPECT_EQ(f.kernels.back().fusion->parameters()[0].type().type, element_type::f16);
}

// A row of a table at a position that is data, such as that of the cosines of a rotary embedding, costs its readers no
// more than a slice does, whatever their number. Several rows are gathered once.
TEST(formation_sharing, single_rows_are_gathered_by_all_their_readers) {
  for (const auto& [rows, kernels] : {std::pair{1, 10u}, {2, 11u}}) {
    const formed f = form([rows](builder& b) {
      value row = b.m.add(gather{0}, {b.w({9, 64}), b.p("position", {rows}, element_type::i64)});
      std::vector<value> results;
      for (int layer = 0; layer < 10; ++layer)
        results.push_back(b.m.add(softmax{1}, {b.f(add, b.p("x" + std::to_string(layer), {4, 64}),
                                                   b.to(b.m.add(slice{{0, 0}, {1, 64}, {1, 1}}, {row}), {4, 64}))}));
      b.out(results);
    });
    EXPECT_EQ(f.symbols.size(), kernels);
  }
}

// Decoders return the keys of all layers as one tensor, and the values as another.
TEST(formation_sharing, stacks_of_equal_shapes_are_written_by_one_kernel) {
  const auto form_stacks = [](std::int64_t other, bool read_again) {
    return form([&](builder& b) {
      std::vector<value> keys, values;
      for (int layer = 0; layer < 3; ++layer) {
        const std::string n = std::to_string(layer);
        keys.push_back(b.m.add(cumulative_sum{1, false, false}, {b.p("k" + n, {1, 5, 6})}));
        values.push_back(b.m.add(cumulative_sum{1, false, false}, {b.p("v" + n, {1, other, 6})}));
      }
      value stack = b.m.add(concat{0}, values);
      std::vector<value> results{b.m.add(concat{0}, keys), stack};
      if (read_again) results.push_back(b.m.add(dot{}, {stack, b.w({3, 6, 2})}));
      b.out(results);
    });
  };
  EXPECT_EQ(form_stacks(5, false).symbols.size(), 7u);
  EXPECT_EQ(form_stacks(4, false).symbols.size(), 8u);
  EXPECT_EQ(form_stacks(5, true).symbols.size(), 9u);
}

}  // namespace
}  // namespace kiln::testing
