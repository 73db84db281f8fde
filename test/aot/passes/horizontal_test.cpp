#include "aot/kernels/partition.hpp"
#include "aot/passes/constant_folding.hpp"
#include "aot/passes/fuse_horizontally.hpp"
#include "aot/passes/simplify_movement.hpp"
#include "test/aot/passes/passes_test.hpp"

namespace kiln::testing {
namespace {

using enum scalar_function;

std::vector<pass> fuse() { return {fuse_horizontally{}, constant_folding{}, simplify_movement{}}; }

// Queries, keys and values of 4 heads, each from a product of its own. The last one may have no bias.
void build_attention(builder& b, bool all_biased, std::vector<value>* parts = nullptr) {
  value x = b.p("x", {10, 24});
  std::vector<value> heads;
  for (unsigned i = 0; i < 3; ++i) {
    value y = b.m.add(dot{}, {x, b.w({24, 32}, i + 1)});
    if (all_biased || i < 2) y = b.f(add, y, b.w({1, 32}, i + 11));
    heads.push_back(b.r(y, {1, 10, 4, 8}));
  }
  if (parts) *parts = heads;
  attention op;
  op.scale = 0.5;
  op.query_layout = op.key_layout = op.value_layout = op.output_layout = head_layout::sequence_first;
  b.out({b.m.add(op, heads)});
}

TEST(horizontal_fusion, makes_one_product_of_queries_keys_and_values) {
  program p = transformed([](builder& b) { build_attention(b, true); }, fuse());
  EXPECT_EQ(count<dot>(p.main()), 1u) << p.str();
  EXPECT_EQ(count<elementwise>(p.main()), 1u) << p.str();
  // The attention reads the parts as slices of the joined product, so there are two kernels.
  EXPECT_EQ(make_partition(p.main()).fusions.size(), 2u) << p.str();
}

// DequantizeLinear [rows, depth] of u8 with scales for groups of 8, as it is after simplification.
value quantized_weights(builder& b, std::int64_t rows, std::int64_t depth, unsigned seed, double zero) {
  const std::vector<dim> apart{rows, depth / 8, 8};
  std::vector<double> numbers(static_cast<std::size_t>(rows * depth));
  std::mt19937 generator(seed);
  for (double& x : numbers) x = static_cast<double>(generator() % 256);
  value x = b.m.add(convert{element_type::f32},
                    {b.m.add_constant(literal::from_doubles({element_type::u8, apart}, numbers))});
  x = b.f(add, x,
          b.to(b.m.add_constant(literal::from_doubles({element_type::f32, {}}, std::vector<double>{-zero})), apart));
  return b.r(b.f(mul, x, b.to(b.w({rows, depth / 8, 1}, seed + 20), apart)), {rows, depth});
}

TEST(horizontal_fusion, joins_quantized_weights_without_converting_them) {
  auto build = [](builder& b) {
    value x = b.p("x", {10, 48});
    std::vector<value> heads;
    for (unsigned i = 0; i < 3; ++i)
      heads.push_back(
          b.r(b.m.add(dot{.transpose_b = true}, {x, quantized_weights(b, 32, 48, i + 1, 100 + i)}), {1, 10, 4, 8}));
    attention op;
    op.scale = 0.5;
    op.query_layout = op.key_layout = op.value_layout = op.output_layout = head_layout::sequence_first;
    b.out({b.m.add(op, heads)});
  };
  program p = transformed(build, fuse());
  EXPECT_EQ(count<dot>(p.main()), 1u) << p.str();
  EXPECT_EQ(count<convert>(p.main()), 1u) << p.str();
  EXPECT_EQ(make_partition(p.main()).fusions.size(), 2u) << p.str();
}

// A square matrix has as many scales along its columns as along its rows.
TEST(horizontal_fusion, leaves_quantized_weights_with_scales_along_the_depth) {
  program p = transformed(
      [](builder& b) {
        value x = b.p("x", {10, 32});
        for (unsigned i = 0; i < 3; ++i) {
          std::vector<double> numbers(32 * 32);
          for (std::size_t k = 0; k < numbers.size(); ++k) numbers[k] = static_cast<double>((k * 7 + i) % 251);
          value w = b.m.add(convert{element_type::f32},
                            {b.m.add_constant(literal::from_doubles({element_type::u8, {32, 32}}, numbers))});
          w = b.f(mul, w, b.to(b.w({1, 32}, i + 30), {32, 32}));
          b.out({b.m.add(softmax{1}, {b.m.add(dot{.transpose_b = true}, {x, w})})});
        }
      },
      {fuse_horizontally{}});
  EXPECT_EQ(count<dot>(p.main()), 3u) << p.str();
}

TEST(horizontal_fusion, gives_zeros_to_parts_without_a_bias) {
  program p = transformed([](builder& b) { build_attention(b, false); }, fuse());
  EXPECT_EQ(count<dot>(p.main()), 1u) << p.str();
  EXPECT_EQ(count<elementwise>(p.main()), 1u) << p.str();
}

TEST(horizontal_fusion, follows_activations_of_all_products) {
  auto build = [](builder& b) {
    value x = b.p("x", {10, 24}), sum;
    for (unsigned i = 0; i < 3; ++i) {
      value y = b.m.add(dot{.transpose_b = true}, {x, b.w({static_cast<std::int64_t>(i) + 5, 24}, i + 1)});
      y = b.f(mul, {y, b.f(sigmoid, {y})});
      y = b.m.add(softmax{1}, {y});
      sum = sum ? b.m.add(concat{1}, {sum, y}) : y;
    }
    b.out({sum});
  };
  program p = transformed(build, fuse());
  EXPECT_EQ(count<dot>(p.main()), 1u) << p.str();
  EXPECT_EQ(count<elementwise>(p.main()), 2u) << p.str();
}

TEST(horizontal_fusion, stays_away_where_copies_would_cost_as_many_launches) {
  auto build = [](builder& b) {
    value x = b.p("x", {10, 24});
    value gate = b.m.add(dot{}, {x, b.w({24, 32}, 1)}), up = b.m.add(dot{}, {x, b.w({24, 32}, 2)});
    value h = b.f(mul, {b.f(mul, {gate, b.f(sigmoid, {gate})}), up});
    b.out({b.m.add(dot{}, {h, b.w({32, 24}, 3)})});
  };
  EXPECT_EQ(count<dot>(transformed(build, fuse()).main()), 3u);
}

TEST(horizontal_fusion, needs_the_same_operand_and_constant_weights) {
  auto build = [](builder& b) {
    value x = b.p("x", {10, 24}), z = b.p("z", {10, 24}), w = b.p("w", {24, 8});
    b.out({b.m.add(softmax{1}, {b.m.add(dot{}, {x, b.w({24, 8}, 1)})}),
           b.m.add(softmax{1}, {b.m.add(dot{}, {z, b.w({24, 8}, 2)})}), b.m.add(softmax{1}, {b.m.add(dot{}, {x, w})})});
  };
  EXPECT_EQ(count<dot>(transformed(build, fuse()).main()), 3u);
}

TEST(horizontal_fusion, joins_convolutions_of_one_image) {
  auto build = [](builder& b) {
    value x = b.p("x", {2, 6, 7, 5});
    std::vector<value> pooled;
    for (unsigned i = 0; i < 3; ++i) {
      value y = b.m.add(convolution{{1, 1}, {1, 1}, {1, 1}, {1, 1}}, {x, b.w({4 + i, 6, 3, 3}, i + 1)});
      y = b.f(relu, {b.f(add, y, b.w({4 + i, 1, 1}, i + 11))});
      pooled.push_back(b.m.add(reduce{reduction_kind::mean, {2, 3}, false}, {y}));
    }
    b.out(pooled);
  };
  program p = transformed(build, fuse());
  EXPECT_EQ(count<convolution>(p.main()), 1u) << p.str();
  EXPECT_EQ(count<elementwise>(p.main()), 2u) << p.str();
}

TEST(horizontal_fusion, works_with_open_rows) {
  program p;
  builder b(p.main());
  value x = b.p("x", {dim::symbol("n"), 24});
  b.out({b.m.add(softmax{1}, {b.m.add(dot{}, {x, b.w({24, 8}, 1)})}),
         b.m.add(softmax{1}, {b.m.add(dot{}, {x, b.w({24, 6}, 2)})}),
         b.m.add(softmax{1}, {b.m.add(dot{}, {x, b.w({24, 4}, 3)})})});
  run_passes(p, fuse());
  p.validate();
  EXPECT_EQ(count<dot>(p.main()), 1u) << p.str();
}

}  // namespace
}  // namespace kiln::testing
