// Which anchors kernel formation puts into one kernel (aot/kernels/joined_anchors.hpp).
#include "aot/kernels/joined_anchors.hpp"

#include "aot/passes/row_factors.hpp"
#include "ir/ops/cache_update.hpp"
#include "test/aot/passes/formed.hpp"

namespace kiln::testing {
namespace {

using enum scalar_function;
using enum element_type;

value weights(builder& b, std::vector<dim> dims, unsigned seed, element_type type = f16) {
  return b.m.add_constant(random_literal({type, std::move(dims)}, seed));
}
value product(builder& b, value rows, std::int64_t columns, unsigned seed) {
  const element_type type = rows.type().type;
  return b.m.add(dot{.type = type}, {rows, weights(b, {rows.type().dims[1], columns}, seed, type)});
}
value normalized(builder& b, value rows, bool centered = false) {
  const element_type type = rows.type().type;
  const value wide = type == f32 ? rows : b.m.add(convert{f32}, {rows});
  const value n = b.m.add(normalize{{1}, 1e-5, centered}, {wide});
  return type == f32 ? n : b.m.add(convert{type}, {n});
}
value silu(builder& b, value v) { return b.f(mul, {v, b.f(sigmoid, {v})}); }

TEST(joined_anchors, a_normalization_joins_the_product_that_reads_it) {
  auto f = form([](builder& b) {
    value x = b.p("x", {2, 24}, f16);
    x = b.f(add, {x, product(b, normalized(b, x), 24, 1)});
    b.out({product(b, normalized(b, x), 40, 2)});
  });
  // The second normalization reads 16 bits: the first product writes no second result.
  EXPECT_EQ(f.symbols, (names{"convert_normalize_convert_dot_add", "convert_normalize_convert_dot"}));
}

TEST(joined_anchors, gate_and_up_join_with_their_normalization) {
  auto f = form([](builder& b) {
    const value y = normalized(b, b.p("x", {1, 24}, f16));
    b.out({product(b, b.f(mul, {silu(b, product(b, y, 40, 1)), product(b, y, 40, 2)}), 24, 3)});
  });
  EXPECT_EQ(f.symbols, (names{"convert_normalize_convert_dot_sigmoid_mul_dot_mul", "dot"}));
}

TEST(joined_anchors, others_stay_apart) {
  // Rows of 32 bits, many rows, a mean that is subtracted, a reader of another kind, two products of different widths.
  auto f = form([](builder& b) { b.out({product(b, normalized(b, b.p("x", {2, 24})), 40, 1)}); });
  EXPECT_EQ(f.symbols, (names{"normalize", "dot"}));
  f = form([](builder& b) { b.out({product(b, normalized(b, b.p("x", {65, 24}, f16)), 40, 1)}); });
  EXPECT_EQ(f.symbols.size(), 2u);
  f = form([](builder& b) { b.out({product(b, normalized(b, b.p("x", {2, 24}, f16), true), 40, 1)}); });
  EXPECT_EQ(f.symbols.size(), 2u);
  f = form([](builder& b) {
    const value y = normalized(b, b.p("x", {2, 24}, f16));
    b.out({product(b, y, 24, 1), y});
  });
  EXPECT_EQ(f.symbols.size(), 2u);
  f = form([](builder& b) {
    const value y = normalized(b, b.p("x", {2, 24}, f16));
    b.out({product(b, y, 40, 1), product(b, y, 32, 2)});
  });
  EXPECT_EQ(f.symbols.size(), 3u);
}

// The gate is read outside, so it must be in memory.
TEST(joined_anchors, a_product_that_others_read_stays_apart) {
  auto f = form([](builder& b) {
    const value x = b.p("x", {1, 24}, f16);
    const value gate = product(b, x, 40, 1);
    b.out({b.f(mul, {silu(b, gate), product(b, x, 40, 2)}), gate});
  });
  EXPECT_EQ(f.symbols.size(), 2u);
}

TEST(joined_anchors, caches_at_equal_positions_join) {
  const auto update = [](builder& b, const std::string& name, value positions, std::int64_t heads) {
    const value cache = b.p(name, {2, heads, 7, 8}, f16), rows = b.p(name + "_rows", {2, heads, 1, 8}, f16);
    return b.m.add(cache_update{2}, {cache, b.f(neg, {rows}), positions});
  };
  auto f = form([&](builder& b) {
    const value at = b.p("at", {1}, i64);
    b.out({update(b, "keys", at, 3), update(b, "values", at, 3), update(b, "others", at, 4)});
  });
  EXPECT_EQ(f.symbols, (names{"neg_cache_update_neg_cache_update", "neg_cache_update"}));
  f = form([&](builder& b) {
    b.out({update(b, "keys", b.p("at", {1}, i64), 3), update(b, "values", b.p("there", {1}, i64), 3)});
  });
  EXPECT_EQ(f.symbols.size(), 2u);
}

std::size_t count_in(std::string_view text, std::string_view word) {
  std::size_t found = 0;
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++found;
  return found;
}

// A step of a decoder: its caches get the rows of one id, and attention reads them, or a part of them.
value decoder_attention(builder& b, std::int64_t queries, bool parts, bool shared, element_type type = f16) {
  const value at = b.p("at", {1}, i64);
  std::vector<value> read, results;
  for (const char* name : {"keys", "values"}) {
    const value cache = b.p(name, {1, 3, 7, 8}, type);
    const value rows = b.p(std::string(name) + "_rows", {1, 3, queries, 8}, type);
    results.push_back(b.m.add(cache_update{2}, {cache, b.f(neg, {rows}), at}));
    read.push_back(parts ? b.m.add(slice{{0, 0, 0, 0}, {1, 3, 5, 8}, {1, 1, 1, 1}}, {results.back()}) : results.back());
  }
  const value y = b.m.add(attention{0.5}, {b.p("q", {1, 6, queries, 8}, type), read[0], read[1]});
  results.push_back(y);
  if (shared) results.push_back(read[0]);
  b.out(results);
  return y;
}

TEST(joined_anchors, attention_joins_the_updates_of_its_caches) {
  for (bool parts : {false, true}) {
    auto f = form([&](builder& b) { decoder_attention(b, 1, parts, false); });
    ASSERT_EQ(f.symbols.size(), 1u) << f.symbols[0];
    EXPECT_EQ(count_in(f.symbols[0], "cache_update"), 2u) << f.symbols[0];
  }
  // Several queries, 32 bits, and a part that is also an output.
  auto f = form([&](builder& b) { decoder_attention(b, 2, false, false); });
  EXPECT_EQ(f.symbols.size(), 2u);
  f = form([&](builder& b) { decoder_attention(b, 1, true, false, f32); });
  EXPECT_EQ(f.symbols.size(), 2u);
  f = form([&](builder& b) { decoder_attention(b, 1, true, true); });
  EXPECT_EQ(f.symbols.size(), 3u);
}

// An update is an output of its kernel even where nothing else reads it: it changes the state of the decoder.
TEST(joined_anchors, updates_that_only_attention_reads_are_outputs) {
  auto f = form([&](builder& b) { b.out({decoder_attention(b, 1, false, false)}); });
  ASSERT_EQ(f.symbols.size(), 1u);
  for (const instruction& i : f.p.main().instructions())
    if (i.op().is<code_object>()) EXPECT_EQ(i.outputs().size(), 3u);
}

// --- factors of normalized rows

value scaled_rows(builder& b, value rows) {
  const value factors = weights(b, {rows.type().dims[1]}, 9, rows.type().type);
  return b.f(mul, {normalized(b, rows), b.to(factors, rows.type().dims)});
}

TEST(row_factors, move_into_the_weights_of_all_readers) {
  for (element_type type : {f16, bf16}) {
    const program p = transformed(
        [&](builder& b) {
          const value y = scaled_rows(b, b.p("x", {2, 24}, type));
          const value other = b.m.add(dot{.transpose_b = true, .type = type}, {y, weights(b, {16, 24}, 3, type)});
          b.out({product(b, y, 40, 1), product(b, y, 32, 2), other});
        },
        {row_factors{}}, type == f16 ? 0.05 : 0.4);
    EXPECT_EQ(count<elementwise>(p.main()), 0u) << p.main().str();
  }
}

TEST(row_factors, stay_where_another_reader_needs_them) {
  const auto multiplications = [](const std::function<void(builder&)>& build) {
    return count<elementwise>(transformed(build, {row_factors{}}).main());
  };
  EXPECT_EQ(multiplications([](builder& b) {
              const value y = scaled_rows(b, b.p("x", {2, 24}, f16));
              b.out({product(b, y, 40, 1), y});
            }),
            1u);
  // Many rows, and weights that are not constant.
  EXPECT_EQ(multiplications([](builder& b) { b.out({product(b, scaled_rows(b, b.p("x", {65, 24}, f16)), 40, 1)}); }),
            1u);
  EXPECT_EQ(multiplications([](builder& b) {
              b.out({b.m.add(dot{.type = f16}, {scaled_rows(b, b.p("x", {2, 24}, f16)), b.p("w", {24, 40}, f16)})});
            }),
            1u);
  // The weights are also something else: the embedding.
  EXPECT_EQ(multiplications([](builder& b) {
              const value w = weights(b, {24, 40}, 1);
              b.out({b.m.add(dot{.type = f16}, {scaled_rows(b, b.p("x", {2, 24}, f16)), w}), b.f(neg, {w})});
            }),
            2u);
  // A weight would become infinite.
  EXPECT_EQ(multiplications([](builder& b) {
              const value x = b.p("x", {2, 24}, f16), factors = b.c(60000, f16);
              b.out({product(b, b.f(mul, normalized(b, x), factors), 40, 1)});
            }),
            1u);
}

}  // namespace
}  // namespace kiln::testing
