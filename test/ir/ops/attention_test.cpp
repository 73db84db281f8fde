#include <limits>

#include "test/ir/ops/support.hpp"

namespace kiln::testing {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
using enum element_type;
constexpr head_layout sequence_first = head_layout::sequence_first;

// Attention expanded to basic operations; key heads are repeated for the query heads. All tensors are [B, H, S, D].
literal composed(const attention& op, const literal& query, literal key, literal value, const literal* mask) {
  auto q = query.type().static_dims(), k = key.type().static_dims();
  auto repeated = [&](const literal& x) {
    auto dims = x.type().static_dims();
    literal wide = run(broadcast{{dims[0], dims[1], q[1] / k[1], dims[2], dims[3]}},
                       {run(reshape{{dims[0], dims[1], 1, dims[2], dims[3]}}, {x})});
    return run(reshape{{dims[0], q[1], dims[2], dims[3]}}, {wide});
  };
  literal scores = run(dot{false, true, f32}, {run(convert{f32}, {query}), run(convert{f32}, {repeated(key)})});
  scores = run(elementwise{scalar_function::mul}, {scores, literal::filled(scores.type(), op.scale)});
  if (mask && mask->type().type == boolean) {
    literal wide = run(broadcast{scores.type().dims}, {*mask});
    scores = run(elementwise{scalar_function::where}, {wide, scores, literal::filled(scores.type(), -inf)});
  } else if (mask) {
    scores = run(elementwise{scalar_function::add},
                 {scores, run(broadcast{scores.type().dims}, {run(convert{f32}, {*mask})})});
  }
  if (op.causal) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < q[0] * q[1]; ++i)
      for (std::int64_t r = 0; r < q[2]; ++r)
        for (std::int64_t c = 0; c < k[2]; ++c) values.push_back(c <= r + k[2] - q[2] ? 0 : -inf);
    scores = run(elementwise{scalar_function::add}, {scores, tensor({q[0], q[1], q[2], k[2]}, values)});
  }
  return run(convert{query.type().type},
             {run(dot{false, false, f32}, {run(softmax{-1}, {scores}), run(convert{f32}, {repeated(value)})})});
}

literal turned(const literal& x) { return run(transpose{{0, 2, 1, 3}}, {x}); }

void expect_composed(const attention& op, const std::vector<literal>& inputs, double tolerance = 1e-6) {
  literal expected = composed(op, inputs[0], inputs[1], inputs[2], inputs.size() == 4 ? &inputs[3] : nullptr);
  expect_values(run(op, inputs), expected.type().static_dims(), expected.to_doubles(), tolerance);
  attention other = op;
  other.query_layout = other.key_layout = other.value_layout = other.output_layout = sequence_first;
  auto moved = inputs;
  for (std::size_t i = 0; i < 3; ++i) moved[i] = turned(inputs[i]);
  expected = turned(expected);
  expect_values(run(other, moved), expected.type().static_dims(), expected.to_doubles(), tolerance);
}

TEST(attention, is_softmax_between_two_products) {
  expect_composed({0.5}, {pattern({2, 3, 5, 4}, 1), pattern({2, 3, 7, 4}, 2), pattern({2, 3, 7, 6}, 3)});
  expect_composed({0.25}, {pattern({1, 4, 1, 8}, 1), pattern({1, 4, 9, 8}, 2), pattern({1, 4, 9, 8}, 3)});
  expect_composed({1}, {pattern({1, 2, 3, 4}, 1, f16), pattern({1, 2, 5, 4}, 2, f16), pattern({1, 2, 5, 3}, 3, f16)},
                  1e-3);
  expect_composed({1}, {pattern({1, 2, 3, 4}, 1, bf16), pattern({1, 2, 5, 4}, 2, bf16), pattern({1, 2, 5, 3}, 3, bf16)},
                  1e-2);
}

TEST(attention, heads_share_keys) {
  expect_composed({0.5}, {pattern({2, 6, 3, 4}, 1), pattern({2, 2, 5, 4}, 2), pattern({2, 2, 5, 4}, 3)});
  expect_composed({0.5, true}, {pattern({1, 4, 3, 4}, 1), pattern({1, 1, 3, 4}, 2), pattern({1, 1, 3, 4}, 3)});
}

TEST(attention, causal_and_masked) {
  std::vector<literal> inputs{pattern({2, 2, 3, 4}, 1), pattern({2, 2, 5, 4}, 2), pattern({2, 2, 5, 4}, 3)};
  expect_composed({0.5, true}, inputs);
  for (const literal& mask :
       {pattern({2, 2, 3, 5}, 4), pattern({2, 1, 1, 5}, 5), pattern({3, 5}, 6), pattern({5}, 7, f16),
        pattern({2, 1, 3, 1}, 8), tensor(boolean, {2, 1, 1, 5}, {1, 0, 1, 1, 0, 0, 0, 0, 1, 1}),
        tensor(boolean, {3, 5}, {1, 1, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0})}) {
    std::vector<literal> masked = inputs;
    masked.push_back(mask);
    expect_composed({0.5}, masked);
  }
}

TEST(attention, a_row_that_sees_nothing_is_not_a_number) {
  literal query = pattern({1, 2, 2}, 1), key = pattern({1, 2, 2}, 2), value = tensor({1, 2, 2}, {1, 2, 3, 4});
  expect_values(run(attention{1}, {query, key, value, tensor(boolean, {2, 2}, {0, 0, 0, 1})}), {1, 2, 2},
                {nan, nan, 3, 4});
  expect_values(run(attention{1}, {query, key, value, tensor({2, 2}, {-inf, -inf, 0, -inf})}), {1, 2, 2},
                {nan, nan, 1, 2});
  // With more queries than keys, the first queries come before every key.
  expect_values(run(attention{1, true}, {query, tensor({1, 1, 2}, {1, 1}), tensor({1, 1, 2}, {5, 6})}), {1, 2, 2},
                {nan, nan, 5, 6});
  expect_values(run(attention{1}, {query, tensor({1, 0, 2}, {}), tensor({1, 0, 2}, {})}), {1, 2, 2}, {0, 0, 0, 0});
}

TEST(attention, mixed_layouts_and_more_batch_dims) {
  literal query = pattern({2, 3, 5, 4}, 1), key = pattern({2, 3, 7, 4}, 2), value = pattern({2, 3, 7, 6}, 3);
  literal expected = run(attention{0.5}, {query, key, value});
  EXPECT_EQ(run(attention{0.5, false, sequence_first}, {turned(query), key, value}), expected);
  EXPECT_EQ(run(attention{0.5, false, {}, sequence_first}, {query, turned(key), value}), expected);
  EXPECT_EQ(run(attention{0.5, false, {}, {}, sequence_first}, {query, key, turned(value)}), expected);
  EXPECT_EQ(run(attention{0.5, false, {}, {}, {}, sequence_first}, {query, key, value}), turned(expected));
  auto deeper = [](const literal& x) {
    auto d = x.type().static_dims();
    return run(reshape{{1, d[0], d[1], d[2], d[3]}}, {x});
  };
  EXPECT_EQ(run(attention{0.5}, {deeper(query), deeper(key), deeper(value)}), deeper(expected));
}

TEST(attention, symbolic_dims_flow_through) {
  dim batch = dim::symbol("batch"), queries = dim::symbol("seq"), keys = dim::symbol("past") + dim::symbol("seq");
  shape query{f16, {batch, queries, 8, 64}}, key{f16, {batch, 2, keys, 64}}, mask{boolean, {batch, 1, queries, keys}};
  std::vector<shape> inputs{query, key, key, mask};
  EXPECT_EQ((attention{1, true, sequence_first}.infer(inputs)[0].str()), "f16[batch, 8, seq, 64]");
  EXPECT_EQ((attention{1, true, sequence_first, {}, {}, sequence_first}.infer(inputs)[0].str()),
            "f16[batch, seq, 8, 64]");
}

TEST(attention, refuses_what_does_not_fit) {
  auto refused = [](const std::string& part, const std::vector<shape>& inputs) {
    expect_error(error_kind::invalid_model, part, [&] { attention{}.infer(inputs); });
  };
  shape q = shape_of(f32, {2, 4, 3, 8}), k = shape_of(f32, {2, 2, 5, 8});
  refused("takes query, key, value", {q, k});
  refused("same rank, at least 3", {shape_of(f32, {3, 8}), shape_of(f32, {5, 8}), shape_of(f32, {5, 8})});
  refused("same rank, at least 3", {q, k, shape_of(f32, {2, 5, 8})});
  refused("floating-point operand", {q.with_type(i32), k.with_type(i32), k.with_type(i32)});
  refused("differ in element type", {q, k, k.with_type(f16)});
  refused("batch dimensions differ", {q, shape_of(f32, {1, 2, 5, 8}), k});
  refused("differ in length", {q, k, shape_of(f32, {2, 2, 6, 8})});
  refused("differ in heads", {q, k, shape_of(f32, {2, 4, 5, 8})});
  refused("differ in depth", {q, shape_of(f32, {2, 2, 5, 4}), k});
  refused("4 heads do not share 3 heads of keys evenly", {q, shape_of(f32, {2, 3, 5, 8}), shape_of(f32, {2, 3, 5, 8})});
  refused("4 heads do not share 0 heads", {q, shape_of(f32, {2, 0, 5, 8}), shape_of(f32, {2, 0, 5, 8})});
  refused("a mask is boolean or floating", {q, k, k, shape_of(i32, {3, 5})});
  refused("mask does not broadcast", {q, k, k, shape_of(f32, {2, 4, 3, 5, 1})});
  refused("mask does not broadcast", {q, k, k, shape_of(f32, {1, 2, 4, 3, 5})});
  refused("dimensions", {q, k, k, shape_of(f32, {4, 5})});
  refused("mask does not broadcast", {shape_of(f32, {2, 4, 1, 8}), k, k, shape_of(f32, {3, 5})});
}

}  // namespace
}  // namespace kiln::testing
