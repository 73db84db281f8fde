#include "aot/kernels/formation.hpp"

#include <algorithm>
#include <set>

#include "aot/pipeline.hpp"
#include "ir/independent_rows.hpp"
#include "test/aot/passes/formed.hpp"
#include "test/aot/passes/legal_fusion.hpp"
#include "test/aot/passes/passes_test.hpp"
#include "test/aot/passes/unformed.hpp"

namespace kiln::testing {
namespace {

using enum scalar_function;

value conv(builder& b, value x, std::int64_t filters, unsigned seed) {
  return b.m.add(convolution{{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, tensor_layout::channels_last},
                 {x, b.w({3, 3, x.type().dims[3].value(), filters}, seed)});
}

TEST(formation, epilogues_with_bias_residual_and_activation) {
  auto f = form([](builder& b) {
    value x = b.p("x", {1, 5, 7, 6});
    b.out({b.f(relu, {b.f(add, {b.f(add, conv(b, x, 6, 1), b.w({6}, 2)), x})})});
  });
  EXPECT_EQ(f.symbols, names{"convolution_add_add_relu"});
}

TEST(formation, equal_layers_share_a_payload) {
  auto f = form([](builder& b) {
    value x = b.p("x", {1, 5, 7, 6});
    for (unsigned i = 0; i < 4; ++i) x = b.f(relu, {b.f(add, conv(b, x, 6, i), b.w({6}, 10 + i))});
    b.out({x});
  });
  EXPECT_EQ(f.symbols,
            (names{"convolution_add_relu", "convolution_add_relu", "convolution_add_relu", "convolution_add_relu"}));
  ASSERT_EQ(f.kernels.size(), 1u);
  EXPECT_EQ(f.kernels[0].uses, 4u);
  EXPECT_EQ(f.p.kernels().size(), 1u);
}

// The size n/16 does not determine n, so an operation with size n cannot be in a kernel whose tensors only have size
// n/16.
TEST(formation, a_quotient_does_not_tell_its_symbol) {
  dim n = dim::symbol("n");
  program p;
  p.symbols["n"] = {16, 64, {}};
  builder b(p.main());
  value x = b.p("x", {n / dim(16), 3});
  value ones = b.m.add(broadcast{{n}}, {b.c(1)});
  value count = b.m.add(reduce{reduction_kind::sum, {0}, true}, {ones});
  b.out({b.f(div, x, b.m.add(broadcast{{n / dim(16), 3}}, {count}))});
  std::vector<formed_kernel> kernels;
  form_kernels(p, write_text, &kernels);
  for (const formed_kernel& kernel : kernels) {
    auto has = [&](value v) { return std::ranges::find(v.type().dims, n) != v.type().dims.end(); };
    bool inside = std::ranges::any_of(kernel.fusion->instructions(),
                                      [&](const instruction& i) { return has({const_cast<instruction*>(&i), 0}); });
    bool outside =
        std::ranges::any_of(kernel.fusion->parameters(), has) || std::ranges::any_of(kernel.fusion->outputs(), has);
    EXPECT_TRUE(!inside || outside);
  }
}

TEST(formation, kernels_are_told_all_their_dims) {
  dim n = dim::symbol("n"), k = dim::symbol("k");
  program p;
  builder b(p.main());
  value x = b.p("x", {n, k});
  value ones = b.m.add(broadcast{{n * dim(2)}},
                       {b.c(1)});  // no input or output of a kernel that sums them would say how many there are
  value count = b.m.add(reduce{reduction_kind::sum, {0}, true}, {ones});
  value rows = b.m.add(reduce{reduction_kind::sum, {1}, true},
                       {b.f(add, x, b.m.add(iota{element_type::f32, {n, k}, 1}, {}))});  // x tells n and k
  b.out({b.f(div, rows, count)});
  std::vector<formed_kernel> kernels;
  form_kernels(p, write_text, &kernels);
  EXPECT_EQ(kernels.size(), 3u);
  for (const formed_kernel& kernel : kernels) {
    std::set<std::string> told, used;
    for (value v : kernel.fusion->parameters())
      for (const dim& d : v.type().dims) told.merge(d.symbols());
    for (value v : kernel.fusion->outputs())
      for (const dim& d : v.type().dims) told.merge(d.symbols());
    for (const instruction& i : kernel.fusion->instructions())
      for (const dim& d : i.outputs()[0].dims) used.merge(d.symbols());
    EXPECT_EQ(told, used) << kernel.fusion->str();
  }
}

TEST(formation, origins_name_everything_that_went_in) {
  program p;
  builder b(p.main());
  value y = b.m.add(dot{}, {b.p("x", {3, 5}), b.w({5, 7})});
  y.producer->set_origin("MatMul_1");
  value z = b.f(relu, {y});
  z.producer->set_origin("Relu_2");
  b.out({z});
  form_kernels(p, write_text);
  EXPECT_EQ(p.main().outputs()[0].producer->origin(), "MatMul_1, Relu_2");
}

TEST(formation, an_anchors_result_that_is_read_again_is_another_output) {
  auto f = form([](builder& b) {
    value y = b.m.add(dot{}, {b.p("x", {3, 5}), b.w({5, 7})});
    value z = b.f(mul, {y, b.f(sigmoid, {y})});
    b.out({b.m.add(dot{}, {z, b.w({7, 2}, 3)}), b.m.add(dot{}, {y, b.w({7, 4}, 4)})});
  });
  EXPECT_EQ(f.symbols.size(), 3u);
  EXPECT_EQ(f.kernels[0].symbol, "dot_sigmoid_mul");
  EXPECT_EQ(f.kernels[0].fusion->outputs().size(), 2u);
}

TEST(formation, no_kernel_needs_its_own_result) {
  // softmax(y) reads y from memory, so y * softmax(y) cannot be y's epilogue.
  auto f = form([](builder& b) {
    value y = b.m.add(dot{}, {b.p("x", {3, 5}), b.w({5, 7})});
    b.out({b.f(mul, {y, b.m.add(softmax{-1}, {y})})});
  });
  EXPECT_EQ(f.symbols, (names{"dot", "softmax_mul"}));
  // The same through a movement operation, and through two anchors that would read each other's epilogues.
  form([](builder& b) {
    value y = b.m.add(dot{}, {b.p("x", {7, 5}), b.w({5, 7})});
    b.out({b.f(add, {y, b.t(b.f(exp, {y}), {1, 0})})});
  });
  form([](builder& b) {
    value x = b.p("x", {7, 7});
    value a = b.m.add(dot{}, {x, b.w({7, 7}, 1)}), c = b.m.add(dot{}, {x, b.w({7, 7}, 2)});
    value a2 = b.f(add, {a, b.t(c, {1, 0})}), c2 = b.f(add, {c, b.t(a, {1, 0})});
    b.out({a2, c2});
  });
}

TEST(formation, prologues_of_rows) {
  auto f = form([](builder& b) {
    value x = b.p("x", {3, 5, 7}), mask = b.p("mask", {3, 1, 7});
    value scores = b.f(add, b.f(mul, x, b.c(0.125)), mask);
    b.out({b.m.add(softmax{-1}, {scores}),
           b.m.add(reduce{reduction_kind::max, {1}, false}, {b.f(exp, {b.p("z", {3, 5, 7})})})});
  });
  EXPECT_EQ(f.symbols, (names{"mul_add_softmax", "exp_reduce"}));
}

value depthwise(builder& b, value x, unsigned seed) {
  const std::int64_t channels = x.type().dims[3].value();
  return b.m.add(convolution{{1, 1}, {1, 1}, {1, 1}, {1, 1}, channels, tensor_layout::channels_last},
                 {x, b.w({3, 3, 1, channels}, seed)});
}

TEST(formation, a_depthwise_convolution_joins_the_normalization_of_its_channels) {
  auto f = form([](builder& b) {
    value x = b.p("x", {2, 5, 7, 16});
    value y = b.f(add, depthwise(b, x, 1), b.w({16}, 2));
    value normal = b.m.add(normalize{{3}, 1e-5, true}, {y});
    b.out({b.f(relu, {b.f(add, {b.f(mul, normal, b.w({16}, 3)), x})})});
  });
  EXPECT_EQ(f.symbols, names{"convolution_add_normalize_mul_add_relu"});
}

TEST(formation, normalizations_that_leave_a_depthwise_convolution_alone) {
  const normalize of_channels{{3}, 1e-5, true};
  const auto formed_of = [](const std::function<std::vector<value>(builder&, value x)>& build,
                            std::int64_t channels = 16) {
    return form([&](builder& b) { b.out(build(b, b.p("x", {1, 5, 7, channels}))); }).symbols;
  };
  const names two{"convolution", "normalize"};
  // Another axis, too few channels for a vector, a dense convolution.
  EXPECT_EQ(formed_of([](builder& b, value x) {
              return std::vector<value>{b.m.add(normalize{{2}, 1e-5, true}, {depthwise(b, x, 1)})};
            }),
            two);
  EXPECT_EQ(
      formed_of([&](builder& b, value x) { return std::vector<value>{b.m.add(of_channels, {depthwise(b, x, 1)})}; },
                12),
      two);
  EXPECT_EQ(
      formed_of([&](builder& b, value x) { return std::vector<value>{b.m.add(of_channels, {conv(b, x, 16, 1)})}; }),
      two);
  // The convolution's result is an output, has another reader, or is added to what another kernel computes.
  EXPECT_EQ(formed_of([&](builder& b, value x) {
              value y = depthwise(b, x, 1);
              return std::vector<value>{b.m.add(of_channels, {y}), y};
            }),
            two);
  EXPECT_EQ(formed_of([&](builder& b, value x) {
              value y = depthwise(b, x, 1);
              return std::vector<value>{b.f(mul, {b.m.add(of_channels, {y}), y})};
            }),
            (names{"convolution", "normalize_mul"}));
  EXPECT_EQ(formed_of([&](builder& b, value x) {
              return std::vector<value>{b.m.add(of_channels, {b.f(add, {depthwise(b, x, 1), depthwise(b, x, 2)})})};
            }),
            (names{"convolution", "convolution_add", "normalize"}));
}

// The halves of a convolution's result are read where they are, with the pitch of the whole.
TEST(formation, channels_of_a_convolution_are_not_copied) {
  const auto half = [](builder& b, value x, std::int64_t first, std::int64_t count) {
    std::vector<dim> lengths = x.type().dims;
    lengths.back() = count;
    return b.m.add(slice{{0, 0, 0, first}, lengths, {1, 1, 1, 1}}, {x});
  };
  auto f = form([&](builder& b) {
    value y = b.f(relu, {conv(b, b.p("x", {1, 5, 7, 6}), 32, 1)});
    value left = half(b, y, 0, 16), right = half(b, y, 16, 16);
    value z = b.f(add, {conv(b, right, 16, 2), right});
    convolution each{{1, 1}, {1, 1}, {1, 1}, {1, 1}, 16, tensor_layout::channels_last};
    value d = b.m.add(each, {left, b.w({3, 3, 1, 16}, 3)});
    pooling largest{pooling_kind::max,           {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, false, false,
                    tensor_layout::channels_last};
    b.out({b.m.add(concat{3}, {left, right, z, d}), b.m.add(largest, {right})});
  });
  EXPECT_EQ(f.symbols, (names{"convolution_relu", "slice_convolution_slice_add", "slice_convolution",
                              "map_slice_slice_concat", "slice_pooling"}));
}

TEST(formation, channels_are_copied_where_views_would_be_slow) {
  const auto sliced = [](std::vector<std::int64_t> starts, std::vector<dim> lengths, std::int64_t whole) {
    return form([&](builder& b) {
             value y = conv(b, b.p("x", {1, 5, 7, 6}), whole, 1);
             b.out({conv(b, b.m.add(slice{starts, lengths, {1, 1, 1, 1}}, {y}), 8, 2)});
           })
        .symbols;
  };
  const names copied{"convolution", "map_slice", "convolution"}, viewed{"convolution", "slice_convolution"};
  EXPECT_EQ(sliced({0, 0, 0, 16}, {1, 5, 7, 16}, 32), viewed);
  EXPECT_EQ(sliced({0, 0, 0, 3}, {1, 5, 7, 16}, 32), copied);   // not aligned
  EXPECT_EQ(sliced({0, 0, 0, 16}, {1, 5, 7, 16}, 33), copied);  // no pixel but the first is aligned
  EXPECT_EQ(sliced({0, 0, 0, 16}, {1, 5, 7, 4}, 32), copied);   // too little of a pixel
  EXPECT_EQ(sliced({0, 1, 0, 0}, {1, 4, 7, 32}, 32), copied);   // not all pixels
  EXPECT_EQ(sliced({0, 0, 0, 5}, {1, 5, 7, 13}, 33), viewed);   // a copy would not be aligned either
  // An image that is computed is not in memory before the slice.
  auto f = form([](builder& b) {
    value y = b.f(add, {b.p("x", {1, 5, 7, 32}), b.p("y", {1, 5, 7, 32})});
    b.out({conv(b, b.m.add(slice{{0, 0, 0, 16}, {1, 5, 7, 16}, {1, 1, 1, 1}}, {y}), 8, 2)});
  });
  EXPECT_EQ(f.symbols, (names{"map_add_slice", "convolution"}));
}

TEST(formation, expensive_functions_are_not_evaluated_again_and_again) {
  auto f = form([](builder& b) {
    value x = b.p("x", {64, 512});
    b.out({b.m.add(normalize{{1}, 1e-3}, {b.f(erf, {x})}),
           b.f(mul, {b.to(b.f(exp, {b.p("row", {512})}), {900, 512}), b.p("y", {900, 512})})});
  });
  std::multiset<std::string> symbols(f.symbols.begin(), f.symbols.end());
  EXPECT_EQ(symbols, (std::multiset<std::string>{"map_erf", "normalize", "map_exp", "map_mul"}));
}

TEST(formation, maps_fuse_and_values_read_twice_are_given_out_or_computed_twice) {
  auto f = form([](builder& b) {
    value x = b.p("x", {300, 500});
    value shared = b.f(exp, {x});
    b.out({b.f(mul, shared, b.p("y", {500})), b.m.add(dot{}, {b.t(shared, {1, 0}), b.w({300, 2})})});
  });
  ASSERT_EQ(f.kernels[0].symbol.substr(0, 4), "map_");
  EXPECT_EQ(f.symbols.size(), 3u);  // exp with mul (two outputs), transpose, dot
}

TEST(formation, reshapes_stay_outside_unless_they_only_add_ones) {
  auto f = form([](builder& b) {
    value x = b.p("x", {4, 6});
    value y = b.r(b.f(exp, {x}), {24});
    value z = b.f(add, {b.to(b.r(b.f(neg, {b.p("row", {6})}), {1, 6}), {4, 6}), x});
    b.out({b.f(abs, {y}), z});
  });
  std::multiset<std::string> symbols(f.symbols.begin(), f.symbols.end());
  EXPECT_EQ(symbols, (std::multiset<std::string>{"map_abs", "map_exp_neg_add"}));
}

TEST(formation, constants_are_parameters_unless_they_are_one_number) {
  auto f = form([](builder& b) {
    value x = b.p("x", {3, 5});
    value y = b.f(add, b.f(mul, x, b.w({5})), b.m.add_constant(literal::filled({element_type::f32, {1, 5}}, 2)));
    b.out({b.m.add(dot{}, {b.m.add_constant(literal::filled({element_type::f32, {2, 3}}, 1)), y})});
  });
  for (const formed_kernel& k : f.kernels) EXPECT_EQ(k.fusion->parameters().size(), 2u) << k.fusion->str();
}

TEST(formation, outputs_that_are_inputs_constants_or_spread_constants) {
  auto f = form([](builder& b) {
    value x = b.p("x", {3});
    b.out({x, b.w({4}), b.to(b.c(2), {2, 3}), b.r(x, {3, 1})});
  });
  EXPECT_TRUE(f.symbols.empty());
}

TEST(formation, irregular_operands_do_not_enter_products) {
  auto f = form([](builder& b) {
    value x = b.p("x", {4, 5}), y = b.p("y", {2, 7}), z = b.p("z", {2, 7});
    b.out({b.f(add, {b.m.add(dot{}, {x, b.w({5, 7})}), b.m.add(concat{0}, {y, z})})});
  });
  std::multiset<std::string> symbols(f.symbols.begin(), f.symbols.end());
  EXPECT_EQ(symbols, (std::multiset<std::string>{"map_concat", "dot_add"}));
}

TEST(formation, attention_takes_queries_and_keys_as_they_are_computed) {
  formed f = form(
      [](builder& b) {
        value x = b.p("x", {2, 5, 3, 3, 4});
        auto part = [&](std::int64_t i) {
          return b.r(b.m.add(slice{{0, 0, i, 0, 0}, {2, 5, 1, 3, 4}, {1, 1, 1, 1, 1}}, {x}), {2, 5, 3, 4});
        };
        value bias = b.f(neg, {b.p("mask", {2, 1, 1, 5})});
        attention op{.scale = 0.5};
        op.query_layout = op.key_layout = op.value_layout = op.output_layout = head_layout::sequence_first;
        b.out({b.f(relu, {b.f(add, b.m.add(op, {part(0), part(1), part(2), bias}), b.p("residual", {2, 5, 3, 4}))})});
      },
      1e-5);
  // Values and mask are read many times, so they must be in memory.
  ASSERT_EQ(f.kernels.size(), 3u);
  const module& fusion = *f.kernels.back().fusion;
  EXPECT_EQ(count<attention>(fusion), 1u) << fusion.str();
  EXPECT_EQ(count<slice>(fusion), 2u) << fusion.str();
  EXPECT_EQ(count<elementwise>(fusion), 2u) << fusion.str();
}

TEST(formation, many_queries_are_converted_once_before_attention) {
  // Equal conversions of keys and values are one kernel.
  for (const auto& [queries, kernels] : {std::pair{64, 3u}, {4, 2u}}) {
    formed f = form(
        [queries](builder& b) {
          const auto half = [&](const std::string& name, std::int64_t rows) {
            return b.m.add(convert{element_type::f16}, {b.p(name, {1, 2, rows, 8})});
          };
          b.out({b.m.add(attention{.scale = 0.5}, {half("q", queries), half("k", 128), half("v", 128)})});
        },
        1e-2);
    EXPECT_EQ(f.kernels.size(), kernels);
  }
}

// The rotated half of a rotary embedding is a concatenation, which products do not compute themselves.
TEST(formation, few_queries_are_rotated_in_attention) {
  for (const auto& [queries, kernels] : {std::pair{1, 1u}, {32, 2u}}) {
    formed f = form(
        [queries](builder& b) {
          value q = b.p("q", {1, 2, queries, 8});
          const auto half = [&](std::int64_t i) {
            return b.m.add(slice{{0, 0, 0, 4 * i}, {1, 2, queries, 4}, {1, 1, 1, 1}}, {q});
          };
          value turned = b.m.add(concat{3}, {b.f(neg, {half(1)}), half(0)});
          value rotated = b.f(add, b.f(mul, q, b.p("cos", {queries, 8})), b.f(mul, turned, b.p("sin", {queries, 8})));
          b.out({b.m.add(attention{.scale = 0.5}, {rotated, b.p("k", {1, 2, 40, 8}), b.p("v", {1, 2, 40, 8})})});
        },
        1e-5);
    EXPECT_EQ(f.kernels.size(), kernels);
  }
}

// The limits of a causal mask may depend on data. The kernel compares positions with them, and many layers share them.
TEST(formation, attention_compares_positions_with_limits) {
  formed f = form(
      [](builder& b) {
        value limits =
            b.r(b.f(scalar_function::max, b.p("positions", {5}, element_type::i64), b.c(1, element_type::i64)),
                {1, 1, 5, 1});
        value columns = b.to(b.m.add(iota{element_type::i64, {dim(40)}, 0}, {}), {1, 1, 5, 40});
        value mask = b.f(scalar_function::less_equal, columns, limits);
        std::vector<value> results;
        for (int layer = 0; layer < 10; ++layer) {
          const std::string n = std::to_string(layer);
          results.push_back(b.m.add(attention{.scale = 0.5}, {b.p("q" + n, {1, 2, 5, 8}), b.p("k" + n, {1, 2, 40, 8}),
                                                              b.p("v" + n, {1, 2, 40, 8}), mask}));
        }
        b.out(results);
      },
      1e-5);
  ASSERT_EQ(f.kernels.size(), 2u);
  const module& fusion = *f.kernels.back().fusion;
  EXPECT_EQ(f.kernels.back().uses, 10u);
  EXPECT_EQ(count<iota>(fusion), 1u) << fusion.str();
}

TEST(formation, bodies_are_formed_too) {
  program p;
  module& body = p.add_module("body");
  builder in(body);
  value trip = in.p("trip", {}, element_type::i64), condition = in.p("condition", {}, element_type::boolean),
        carried = in.p("carried", {3, 5}), extra = in.p("extra", {5});
  in.out({condition, in.f(add, in.f(mul, carried, extra), in.m.add(convert{element_type::f32}, {trip}))});
  builder b(p.main());
  value x = b.p("x", {3, 5}), e = b.p("e", {5});
  value result =
      b.m.add(loop{1, 3}, {b.c(3, element_type::i64), b.c(1, element_type::boolean), b.f(exp, {x}), e}, {&body});
  b.out({b.f(neg, {result})});
  auto expected = run(p);
  std::vector<formed_kernel> kernels;
  form_kernels(p, write_text, &kernels);
  p.validate();
  ASSERT_EQ(kernels.size(), 3u);
  EXPECT_EQ(count<elementwise>(p.modules().back()), 0u);
  expect_equal(expected, run(unformed(p, kernels)), 1e-6);
}

TEST(formation, sizes_are_estimated_where_small_ones_have_no_quotient) {
  dim n = dim::symbol("n");
  EXPECT_EQ(estimated_elements({element_type::f32, {n, 3}}), 24);
  EXPECT_GT(estimated_elements({element_type::f32, {n / (n / 16)}}), 0);
}

TEST(formation, symbolic_dims) {
  program p;
  p.symbols["n"] = {1, 8, {}};
  builder b(p.main());
  dim n = dim::symbol("n");
  value y = b.f(add, b.m.add(dot{}, {b.p("x", {n, 5}), b.w({5, 7})}), b.w({7}, 2));
  b.out({b.m.add(softmax{-1}, {y})});
  program reference = p.bind({{"n", 3}});
  auto expected = run(reference);
  std::vector<formed_kernel> kernels;
  form_kernels(p, write_text, &kernels);
  p.validate();
  EXPECT_EQ(kernels.size(), 2u);
  program bound = unformed(p, kernels);
  bound.symbols = p.symbols;
  expect_equal(expected, run(bound.bind({{"n", 3}})), 1e-6);
}

TEST(formation, sizes_computed_in_floats_are_symbols_of_kernels) {
  auto scaled = [](float by, const char* of) {
    return dim::floor_of_real({{real_step::kind::size}, {real_step::kind::number, 0, by}, {real_step::kind::mul}},
                              {dim::symbol(of)});
  };
  program p;
  builder b(p.main());
  const dim first = scaled(0.7f, "h"), second = scaled(0.3f, "w");
  b.out({b.f(relu, {b.p("x", {first, 5})}), b.f(relu, {b.p("y", {second, 5})})});
  std::vector<formed_kernel> kernels;
  form_kernels(p, write_text, &kernels);
  p.validate();
  ASSERT_EQ(kernels.size(), 1u);  // the two differ in sizes only
  EXPECT_EQ(kernels[0].fusion->parameters()[0].type().dims[0], dim::symbol("computed.0"));
  EXPECT_FALSE(recorded_rows(p, kernels[0].payload.hex()));
  EXPECT_EQ(p.main().outputs()[0].type().dims[0], first);
  EXPECT_EQ(p.main().outputs()[1].type().dims[0], second);
}

// Random graphs: fusion must preserve the numbers and must not create cycles.
class random_graphs : public ::testing::TestWithParam<unsigned> {};

TEST_P(random_graphs, form_without_changing_numbers) {
  std::mt19937 g(GetParam());
  auto build = [&](builder& b) {
    std::vector<value> values{b.p("x", {6, 6}), b.p("y", {6, 6}), b.w({6, 6})};
    auto pick = [&] { return values[values.size() - 1 - g() % std::min<std::size_t>(values.size(), 8)]; };
    for (int i = 0; i < 40; ++i) {
      value v = pick(), w = pick();
      switch (g() % 14) {
        case 0: v = b.f(add, {v, w}); break;
        case 1: v = b.f(min, {v, w}); break;
        case 2: v = b.f(tanh, {v}); break;
        case 3: v = b.t(v, {1, 0}); break;
        case 4: v = b.m.add(softmax{static_cast<std::int64_t>(g() % 2)}, {v}); break;
        case 5: v = b.f(tanh, {b.m.add(dot{.transpose_b = g() % 2 == 0}, {v, w})}); break;
        case 6:
          v = b.f(sub, v, b.m.add(reduce{reduction_kind::mean, {static_cast<std::int64_t>(g() % 2)}, true}, {w}));
          break;
        case 7: v = b.r(b.r(v, {4, 9}), {6, 6}); break;
        case 8: v = b.r(b.f(abs, {b.r(v, {36})}), {6, 6}); break;
        case 9: v = b.m.add(slice{{5, 0}, {6, 6}, {-1, 1}}, {v}); break;
        case 10:
          v = b.m.add(slice{{1, 3}, {6, 6}, {1, 1}},
                      {b.m.add(concat{1}, {b.m.add(concat{0}, {v, w}), b.m.add(concat{0}, {w, v})})});
          break;
        case 11: v = b.m.add(normalize{{1}, 1e-3}, {v}); break;
        case 12: v = b.f(mul, v, b.r(b.m.add(slice{{2, 0}, {1, 6}, {1, 1}}, {w}), {6})); break;
        case 13: v = b.f(clamp, {v, b.to(b.c(-1), {6, 6}), b.to(b.c(1), {6, 6})}); break;
      }
      values.push_back(v);
    }
    b.out({values.back(), values[values.size() - 4], values[values.size() - 9], values[20]});
  };
  form(build, 1e-5);
  // The whole pipeline on the same graph.
  program p;
  builder b(p.main());
  g.seed(GetParam());
  build(b);
  auto expected = run(p);
  optimize(p);
  p.validate();
  expect_equal(expected, run(p), 2e-4);
  std::vector<formed_kernel> kernels;
  form_kernels(p, write_text, &kernels);
  p.validate();
  expect_equal(expected, run(unformed(p, kernels)), 2e-4);
}

INSTANTIATE_TEST_SUITE_P(seeds, random_graphs, ::testing::Range(1u, 120u));

}  // namespace
}  // namespace kiln::testing
