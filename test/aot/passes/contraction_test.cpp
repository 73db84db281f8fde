#include "aot/passes/constant_folding.hpp"
#include "aot/passes/simplify_arithmetic.hpp"
#include "aot/passes/simplify_contractions.hpp"
#include "aot/passes/simplify_movement.hpp"
#include "test/aot/passes/passes_test.hpp"

namespace kiln::testing {
namespace {

using enum scalar_function;

until_stable simplify() {
  return {"simplify", {constant_folding{}, simplify_arithmetic{}, simplify_movement{}, simplify_contractions{}}};
}

// Batch normalization in the form in which it is imported (scale, then shift, one number per channel) after a
// convolution that may have a bias.
struct convolution_case {
  std::string name;
  std::int64_t channels, filters, groups, stride, before, after;
  bool bias;
};

class batch_norm : public ::testing::TestWithParam<convolution_case> {};

TEST_P(batch_norm, goes_into_weights_and_one_bias) {
  const auto& c = GetParam();
  auto build = [&](builder& b) {
    value x = b.p("x", {2, c.channels, 9, 7});
    convolution op{{c.stride, c.stride}, {1, 1}, {c.before, c.before}, {c.after, c.after}, c.groups};
    value y = b.m.add(op, {x, b.w({c.filters, c.channels / c.groups, 3, 2})});
    if (c.bias) y = b.f(add, y, b.w({c.filters, 1, 1}, 2));
    y = b.f(add, b.f(mul, y, b.w({1, c.filters, 1, 1}, 3)), b.w({c.filters, 1, 1}, 4));
    b.out({b.f(relu, {y})});
  };
  program p = transformed(build, {simplify()});
  EXPECT_EQ(count<elementwise>(p.main()), 2u) << p.str();  // add, relu
  EXPECT_EQ(count<constant>(p.main()), 2u);
  EXPECT_EQ(count<convolution>(p.main()), 1u);
}

TEST_P(batch_norm, goes_into_transposed_weights) {
  const auto& c = GetParam();
  auto build = [&](builder& b) {
    value x = b.p("x", {2, c.channels, 5, 7});
    transposed_convolution op{{c.stride, c.stride}, {1, 1}, {c.before, c.before}, {c.after, c.after}, {0, 0}, c.groups};
    value y = b.m.add(op, {x, b.w({c.channels, c.filters / c.groups, 3, 4})});
    if (c.bias) y = b.f(add, y, b.w({c.filters, 1, 1}, 2));
    b.out({b.f(add, b.f(mul, y, b.w({1, c.filters, 1, 1}, 3)), b.w({c.filters, 1, 1}, 4))});
  };
  program p = transformed(build, {simplify()});
  EXPECT_EQ(count<elementwise>(p.main()), 1u) << p.str();
}

INSTANTIATE_TEST_SUITE_P(convolutions, batch_norm,
                         ::testing::Values(convolution_case{"plain", 3, 5, 1, 1, 0, 0, false},
                                           convolution_case{"bias", 3, 5, 1, 1, 0, 0, true},
                                           convolution_case{"groups", 6, 9, 3, 1, 0, 0, true},
                                           convolution_case{"depthwise", 5, 5, 5, 1, 1, 1, true},
                                           convolution_case{"depthwise_multiplier", 5, 10, 5, 1, 1, 1, false},
                                           convolution_case{"stride", 4, 6, 2, 2, 0, 0, true},
                                           convolution_case{"padding", 3, 5, 1, 2, 1, 0, true}),
                         [](const auto& info) { return info.param.name; });

TEST(factors, stay_where_weights_are_shared_or_spatial) {
  auto build = [](builder& b) {
    value x = b.p("x", {2, 3, 5, 7});
    value y = b.m.add(convolution{{1, 1}, {1, 1}, {0, 0}, {0, 0}}, {x, b.w({4, 3, 1, 1})});
    b.out({b.f(mul, y, b.w({4, 1, 1}, 2)), y,
           b.f(mul, b.m.add(convolution{{1, 1}, {1, 1}, {0, 0}, {0, 0}}, {x, b.w({4, 3, 1, 1}, 5)}), b.w({7}, 3))});
  };
  program p = transformed(build, {simplify()});
  EXPECT_EQ(count<elementwise>(p.main()), 2u);
}

TEST(factors, go_into_matrices_of_either_orientation) {
  for (bool transposed : {false, true}) {
    auto build = [&](builder& b) {
      value x = b.p("x", {5, 3});
      value y = b.m.add(dot{.transpose_b = transposed}, {x, transposed ? b.w({7, 3}) : b.w({3, 7})});
      b.out({b.f(mul, b.f(add, b.f(mul, y, b.w({7}, 2)), b.w({7}, 3)), b.c(0.5))});
    };
    program p = transformed(build, {simplify()});
    EXPECT_EQ(count<elementwise>(p.main()), 1u) << p.str();
  }
}

TEST(dots, take_transposes_as_flags) {
  auto build = [](builder& b) {
    value x = b.p("x", {2, 5, 3}), y = b.p("y", {2, 7, 5});
    b.out({b.m.add(dot{}, {b.t(x, {0, 2, 1}), b.t(y, {0, 2, 1})})});
  };
  program p = transformed(build, {simplify()});
  EXPECT_EQ(count<transpose>(p.main()), 0u);
  EXPECT_TRUE(only<dot>(p.main())->transpose_a && only<dot>(p.main())->transpose_b);
}

TEST(dots, make_rows_of_batches_with_shared_weights) {
  auto build = [](builder& b) {
    value x = b.p("x", {2, 5, 3});
    b.out({b.m.add(dot{.transpose_b = true}, {x, b.to(b.w({7, 3}), {2, 7, 3})})});
  };
  program p = transformed(build, {simplify()});
  EXPECT_EQ(p.main().str(), transformed(
                                [](builder& b) {
                                  value x = b.p("x", {2, 5, 3}), w = b.w({7, 3});
                                  b.out({b.r(b.m.add(dot{.transpose_b = true}, {b.r(x, {10, 3}), w}), {2, 5, 7})});
                                },
                                {simplify()})
                                .main()
                                .str());
  EXPECT_EQ(count<broadcast>(p.main()), 0u);
}

TEST(dots, make_rows_of_queries_that_share_keys) {
  for (bool transposed : {true, false}) {
    auto build = [&](builder& b) {
      value q = b.p("q", {2, 6, 5, 3}), k = transposed ? b.p("k", {2, 2, 7, 3}) : b.p("k", {2, 2, 3, 7});
      std::vector<dim> wide = transposed ? std::vector<dim>{2, 2, 3, 7, 3} : std::vector<dim>{2, 2, 3, 3, 7};
      value stretched =
          b.to(b.r(k, transposed ? std::vector<dim>{2, 2, 1, 7, 3} : std::vector<dim>{2, 2, 1, 3, 7}), wide);
      b.out({b.m.add(dot{.transpose_b = transposed},
                     {q, b.r(stretched, transposed ? std::vector<dim>{2, 6, 7, 3} : std::vector<dim>{2, 6, 3, 7})})});
    };
    program p = transformed(build, {simplify()});
    EXPECT_EQ(count<broadcast>(p.main()), 0u) << p.str();
  }
}

TEST(images, take_padding_into_convolutions) {
  auto build = [](builder& b) {
    value x = b.m.add(pad{{0, 0, 1, 2}, {0, 0, 0, 3}}, {b.p("x", {1, 3, 5, 7})});
    b.out({b.m.add(convolution{{2, 1}, {1, 1}, {1, 0}, {0, 1}}, {x, b.w({4, 3, 3, 3})})});
  };
  program p = transformed(build, {simplify()});
  EXPECT_EQ(count<pad>(p.main()), 0u);
  EXPECT_EQ(only<convolution>(p.main())->pads_begin, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(only<convolution>(p.main())->pads_end, (std::vector<std::int64_t>{0, 4}));
}

TEST(images, keep_padding_that_is_not_zero_or_not_spatial) {
  auto build = [](builder& b) {
    value x = b.p("x", {1, 3, 5, 7});
    value ones = b.m.add(pad{{0, 0, 1, 1}, {0, 0, 1, 1}, pad_mode::constant_, 1}, {x}),
          channel = b.m.add(pad{{0, 1, 0, 0}, {0, 0, 0, 0}}, {x});
    convolution op{{1, 1}, {1, 1}, {0, 0}, {0, 0}};
    b.out({b.m.add(op, {ones, b.w({4, 3, 3, 3})}), b.m.add(op, {channel, b.w({4, 4, 3, 3})})});
  };
  EXPECT_EQ(count<pad>(transformed(build, {simplify()}).main()), 2u);
}

TEST(images, of_one_pixel_are_matrix_products) {
  auto build = [](builder& b) {
    value x = b.p("x", {3, 6, 5, 7});
    pooling all{pooling_kind::average, {5, 7}, {1, 1}, {1, 1}, {0, 0}, {0, 0}};
    value y = b.m.add(convolution{{1, 1}, {1, 1}, {0, 0}, {0, 0}}, {b.m.add(all, {x}), b.w({4, 6, 1, 1})});
    b.out({y});
  };
  program p = transformed(build, {simplify()});
  EXPECT_EQ(count<pooling>(p.main()) + count<convolution>(p.main()), 0u);
  EXPECT_EQ(count<reduce>(p.main()), 1u);
  EXPECT_EQ(count<dot>(p.main()), 1u);
}

// transformed() compares the numbers before and after.
TEST(images, of_one_column_become_rows) {
  for (tensor_layout layout : {tensor_layout::channels_first, tensor_layout::channels_last}) {
    auto build = [&](builder& b) {
      const bool first = layout == tensor_layout::channels_first;
      convolution op{{2, 1}, {1, 1}, {1, 0}, {2, 0}, 1, layout};
      b.out({b.m.add(op, {b.p("x", first ? std::vector<dim>{2, 3, 9, 1} : std::vector<dim>{2, 9, 1, 3}),
                          b.w(first ? std::vector<dim>{4, 3, 5, 1} : std::vector<dim>{5, 1, 3, 4})})});
    };
    program p = transformed(build, {simplify()});
    EXPECT_EQ(only<convolution>(p.main())->strides, (std::vector<std::int64_t>{1, 2})) << p.str();
    EXPECT_EQ(only<convolution>(p.main())->pads_end, (std::vector<std::int64_t>{0, 2}));
  }
}

TEST(images, of_one_row_need_one_row_of_the_window) {
  for (std::int64_t dilation : {1, 2}) {
    auto build = [&](builder& b) {
      convolution op{{1, 1}, {dilation, 1}, {dilation, 1}, {dilation, 1}, 3};
      b.out({b.m.add(op, {b.p("x", {2, 6, 1, 7}), b.w({6, 2, 3, 3})})});
    };
    program p = transformed(build, {simplify()});
    EXPECT_EQ(only<convolution>(p.main())->pads_begin, (std::vector<std::int64_t>{0, 1})) << p.str();
    const instruction* found = nullptr;
    for (const instruction& i : p.main().instructions())
      if (i.op().is<convolution>()) found = &i;
    EXPECT_EQ(found->inputs()[1].type().dims, (std::vector<dim>{6, 2, 1, 3}));
  }
}

TEST(reductions, keep_dims_where_a_reshape_puts_them_back) {
  auto build = [](builder& b) {
    value x = b.p("x", {3, 5, 7});
    value mean = b.m.add(reduce{reduction_kind::mean, {1}, false}, {x});
    b.out({b.f(sub, x, b.r(mean, {3, 1, 7})), b.m.add(reduce{reduction_kind::max, {0}, false}, {b.r(x, {1, 15, 7})})});
  };
  program p = transformed(build, {simplify()});
  ASSERT_EQ(count<reduce>(p.main()), 1u);
  EXPECT_TRUE(only<reduce>(p.main())->keep_dims);
}

}  // namespace
}  // namespace kiln::testing
