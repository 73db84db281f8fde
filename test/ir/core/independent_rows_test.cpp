// Checks which kernels compute each row independently. An accepted kernel must give the same numbers in blocks as in
// one run. Kernels that mix rows must be refused.
#include "ir/independent_rows.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "ir/ops/all.hpp"
#include "ir/ops/segment_sum.hpp"

namespace kiln::testing {
namespace {

const dim batch = dim::symbol("batch"), seq = dim::symbol("seq");

shape f32(std::vector<dim> dims) { return {element_type::f32, std::move(dims)}; }
shape i64(std::vector<dim> dims) { return {element_type::i64, std::move(dims)}; }

literal random(const shape& type, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> any(-1, 1);
  std::uniform_int_distribution<int> index(0, 2);
  std::vector<double> values(static_cast<std::size_t>(type.element_count()));
  for (double& v : values) v = is_float(type.type) ? any(engine) : index(engine);
  return literal::from_doubles(type, values);
}

// Returns the bytes of `count` rows from row `first` on, of a tensor with `rows` rows.
std::span<const std::byte> part(const literal& whole, std::int64_t rows, std::int64_t first, std::int64_t count) {
  const std::size_t bytes = whole.bytes().size() / static_cast<std::size_t>(rows);
  return whole.bytes().subspan(static_cast<std::size_t>(first) * bytes, static_cast<std::size_t>(count) * bytes);
}

using builder = std::function<value(module&)>;

program kernel(const builder& build) {
  program p;
  p.symbols = {{"batch", {1, 64, {}}}, {"seq", {1, 64, {}}}};
  p.main().set_outputs({build(p.main())}, {"o"});
  return p;
}

// Symbols that do not count rows get the value 3.
dim_bindings sizes_of(const dim& rows, std::int64_t count) {
  return block_of_rows(rows, count, {{"batch", 3}, {"seq", 3}});
}

// Runs 7 rows in one run, and as blocks of 4, 2 and 1.
void expect_rows(const builder& build, const dim& expected) {
  const program p = kernel(build);
  const auto rows = independent_rows(p.main());
  ASSERT_TRUE(rows.has_value()) << p.main().str();
  EXPECT_EQ(rows->str(), expected.str());
  constexpr std::int64_t count = 7;
  const program whole = p.bind(sizes_of(*rows, count));
  std::vector<literal> inputs;
  for (value v : whole.main().parameters()) inputs.push_back(random(v.type(), static_cast<unsigned>(inputs.size())));
  const literal at_once = evaluate(whole.main(), inputs)[0];
  std::int64_t first = 0;
  for (std::int64_t block : {4, 2, 1}) {
    const program some = p.bind(sizes_of(*rows, block));
    std::vector<literal> cut;
    const auto open = p.main().parameters(), bound = some.main().parameters();
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (!has_rows(open[i].type(), *rows)) {
        cut.push_back(inputs[i]);
        continue;
      }
      const auto bytes = part(inputs[i], count, first, block);
      cut.emplace_back(bound[i].type(), std::vector<std::byte>(bytes.begin(), bytes.end()));
    }
    const literal in_blocks = evaluate(some.main(), cut)[0];
    const auto wanted = part(at_once, count, first, block);
    EXPECT_TRUE(std::ranges::equal(in_blocks.bytes(), wanted)) << "rows " << first << " of " << p.main().str();
    first += block;
  }
}

void expect_refused(const builder& build) {
  const program p = kernel(build);
  EXPECT_FALSE(independent_rows(p.main()).has_value()) << p.main().str();
}

value tanh(module& m, value v) { return m.add(elementwise{scalar_function::tanh}, {v}); }

TEST(independent_rows, pointwise_kernels_with_broadcasts) {
  expect_rows(
      [](module& m) {
        value x = m.add_parameter("x", f32({batch, 3, 5})), b = m.add_parameter("b", f32({3, 1}));
        value wide = m.add(broadcast{{batch, 3, 5}}, {b});
        return tanh(m, m.add(elementwise{scalar_function::add}, {x, wide}));
      },
      batch);
  expect_rows(
      [](module& m) {
        value x = m.add_parameter("x", f32({batch, 1})), y = m.add_parameter("y", f32({batch, 4}));
        return m.add(elementwise{scalar_function::mul}, {m.add(broadcast{{batch, 4}}, {x}), y});
      },
      batch);
}

TEST(independent_rows, several_leading_dims_count_rows_together) {
  expect_rows(
      [](module& m) {
        value x = m.add_parameter("x", f32({batch, seq, 6})), w = m.add_parameter("w", f32({6, 4}));
        value flat = m.add(reshape{{batch * seq, 6}}, {x});
        return m.add(reshape{{batch, seq, 2, 2}}, {m.add(dot{}, {flat, w})});
      },
      batch * seq);
}

TEST(independent_rows, open_dims_inside_a_row) {
  // Each token adds the vector of its position, so a row is a sentence, not a token.
  expect_rows(
      [](module& m) {
        value x = m.add_parameter("x", f32({batch, seq, 6})), p = m.add_parameter("p", f32({seq, 6}));
        return m.add(elementwise{scalar_function::add}, {x, m.add(broadcast{{batch, seq, 6}}, {p})});
      },
      batch);
  expect_rows(
      [](module& m) {
        value x = m.add_parameter("x", f32({batch * seq, 6}));
        return m.add(transpose{{0, 2, 1}}, {m.add(reshape{{batch, seq, 6}}, {x})});
      },
      batch);
  expect_rows(
      [](module& m) {
        value q = m.add_parameter("q", f32({batch, 2, seq, 4}));
        return m.add(attention{0.5}, {q, q, q});
      },
      batch);
  expect_rows([](module& m) { return m.add(softmax{1}, {m.add_parameter("x", f32({batch, seq}))}); }, batch);
  // Refused: the sentences are not the leading axis.
  expect_refused([](module& m) {
    value x = m.add_parameter("x", f32({batch * seq, 6}));
    return m.add(transpose{{1, 0, 2}}, {m.add(reshape{{seq, batch, 6}}, {x})});
  });
  expect_refused([](module& m) {
    value x = m.add_parameter("x", f32({seq, batch, 6}));
    return m.add(transpose{{1, 0, 2}}, {x});
  });
}

TEST(independent_rows, movement_inside_rows) {
  expect_rows(
      [](module& m) {
        value x = m.add_parameter("x", f32({batch, 4, 6}));
        value t = m.add(transpose{{0, 2, 1}}, {x});
        value s = m.add(slice{{0, 1, 0}, {batch, 4, 4}, {1, 1, 1}}, {t});
        value p = m.add(pad{{0, 1, 0}, {0, 1, 0}}, {s});
        return m.add(concat{1}, {t, p});
      },
      batch);
  expect_rows([](module& m) { return m.add(reshape{{dim(3) * batch, 2}}, {m.add_parameter("x", f32({batch, 6}))}); },
              batch);
  expect_refused([](module& m) { return m.add(transpose{{1, 0, 2}}, {m.add_parameter("x", f32({batch, 3, 4}))}); });
  expect_refused([](module& m) {
    return m.add(slice{{1, 0}, {batch - dim(1), 4}, {1, 1}}, {m.add_parameter("x", f32({batch, 4}))});
  });
  expect_refused([](module& m) {
    value x = m.add_parameter("x", f32({batch, 4}));
    return m.add(slice{{0, 0}, {batch, 4}, {-1, 1}}, {x});
  });
  expect_refused([](module& m) {
    value x = m.add_parameter("x", f32({batch, 4}));
    return m.add(concat{0}, {x, x});
  });
  expect_refused([](module& m) { return m.add(pad{{1, 0}, {0, 0}}, {m.add_parameter("x", f32({batch, 4}))}); });
}

TEST(independent_rows, lookups) {
  expect_rows(
      [](module& m) {
        value table = m.add_parameter("table", f32({3, 5})), ids = m.add_parameter("ids", i64({batch, 2}));
        return m.add(gather{0}, {table, ids});
      },
      batch);
  expect_rows(
      [](module& m) {
        value x = m.add_parameter("x", f32({batch, 3, 5})), ids = m.add_parameter("ids", i64({2}));
        return m.add(gather{1}, {x, ids});
      },
      batch);
  // Refused: the ids refer to rows.
  expect_refused([](module& m) {
    value x = m.add_parameter("x", f32({batch, 5})), ids = m.add_parameter("ids", i64({batch}));
    return m.add(gather{0}, {x, ids});
  });
  expect_refused([](module& m) { return m.add(iota{element_type::f32, {batch, 4}, 0}, {}); });
  expect_rows(
      [](module& m) {
        value x = m.add_parameter("x", f32({batch, 4}));
        return m.add(elementwise{scalar_function::add}, {x, m.add(iota{element_type::f32, {batch, 4}, 1}, {})});
      },
      batch);
}

TEST(independent_rows, products) {
  expect_rows(
      [](module& m) {
        value x = m.add_parameter("x", f32({batch, 6})), w = m.add_parameter("w", f32({5, 6}));
        return tanh(m, m.add(dot{false, true}, {x, w}));
      },
      batch);
  expect_rows(
      [](module& m) {
        value a = m.add_parameter("a", f32({batch, 3, 6})), b = m.add_parameter("b", f32({batch, 6, 2}));
        return m.add(dot{}, {a, b});
      },
      batch);
  // The depth is open, and with it the right operand.
  expect_refused([](module& m) {
    value a = m.add_parameter("a", f32({batch, 6})), b = m.add_parameter("b", f32({batch, 5}));
    return m.add(dot{true}, {a, b});
  });
  expect_refused([](module& m) {
    value a = m.add_parameter("a", f32({batch, 6})), b = m.add_parameter("b", f32({batch, 6}));
    return m.add(dot{false, true}, {a, b});
  });
}

TEST(independent_rows, images) {
  const convolution with_borders{{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, tensor_layout::channels_first};
  expect_rows(
      [&](module& m) {
        value x = m.add_parameter("x", f32({batch, 2, 5, 5})), w = m.add_parameter("w", f32({3, 2, 3, 3}));
        value c = m.add(with_borders, {x, w});
        pooling pool;
        pool.window = pool.strides = {2, 2};
        pool.dilations = {1, 1};
        pool.pads_begin = pool.pads_end = {0, 0};
        return m.add(pool, {c});
      },
      batch);
  expect_rows(
      [&](module& m) {  // the height is open
        value x = m.add_parameter("x", f32({batch, 2, seq, 5})), w = m.add_parameter("w", f32({3, 2, 3, 3}));
        return m.add(with_borders, {x, w});
      },
      batch);
}

TEST(independent_rows, rows_that_are_combined_inside) {
  expect_rows(
      [](module& m) {
        value x = m.add_parameter("x", f32({batch, 3, 4}));
        value n = m.add(normalize{{2}}, {m.add(softmax{1}, {x})});
        return m.add(reduce{reduction_kind::sum, {1}}, {n});
      },
      batch);
  expect_refused([](module& m) { return m.add(softmax{0}, {m.add_parameter("x", f32({batch, 4}))}); });
  expect_refused(
      [](module& m) { return m.add(reduce{reduction_kind::sum, {0}}, {m.add_parameter("x", f32({batch, 4}))}); });
  expect_refused([](module& m) { return m.add(normalize{{0, 1}}, {m.add_parameter("x", f32({batch, 4}))}); });
  expect_refused([](module& m) { return m.add(cumulative_sum{0}, {m.add_parameter("x", f32({batch, 4}))}); });
}

TEST(independent_rows, attention_over_its_own_keys) {
  expect_rows(
      [](module& m) {
        value q = m.add_parameter("q", f32({batch, 2, 3, 4})), k = m.add_parameter("k", f32({batch, 2, 5, 4}));
        value v = m.add_parameter("v", f32({batch, 2, 5, 4})), mask = m.add_parameter("mask", f32({batch, 1, 1, 5}));
        return m.add(attention{0.5}, {q, k, v, mask});
      },
      batch);
  expect_refused([](module& m) {  // the number of keys is open, the batch is known
    value q = m.add_parameter("q", f32({2, 2, seq, 4}));
    return m.add(attention{0.5}, {q, q, q});
  });
}

TEST(independent_rows, kernels_without_open_dims_or_with_others_have_none) {
  expect_refused([](module& m) { return tanh(m, m.add_parameter("x", f32({3, 4}))); });
  expect_refused([](module& m) { return tanh(m, m.add_parameter("x", f32({4, batch}))); });
  expect_refused([](module& m) { return tanh(m, m.add_parameter("x", f32({batch + seq, 4}))); });
  expect_refused([](module& m) { return tanh(m, m.add_parameter("x", f32({batch * batch, 4}))); });
  expect_refused([](module& m) { return tanh(m, m.add_parameter("x", f32({batch / dim(2), 4}))); });
}

TEST(independent_rows, the_record_travels_with_the_program) {
  program p;
  record_rows(p, "abc", batch * seq);
  const program copy = p.clone();
  ASSERT_TRUE(recorded_rows(copy, "abc").has_value());
  EXPECT_EQ(*recorded_rows(copy, "abc"), batch * seq);
  EXPECT_FALSE(recorded_rows(copy, "def").has_value());
  EXPECT_EQ(block_of_rows(batch * seq, 16), (dim_bindings{{"batch", 16}, {"seq", 1}}));
  EXPECT_EQ(block_of_rows(batch, 4, {{"batch", 9}, {"seq", 7}}), (dim_bindings{{"batch", 4}, {"seq", 7}}));
}

}  // namespace
}  // namespace kiln::testing
