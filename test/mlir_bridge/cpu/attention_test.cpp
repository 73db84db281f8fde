// attention against the reference: sizes around tiles and chunks, element types, layouts, masks, shared heads,
// prologues and epilogues.
#include "harness.hpp"

#include <limits>

namespace kiln::test {
namespace {

using in = const std::vector<value>&;
using element_type::bf16, element_type::boolean, element_type::f16, element_type::f64;
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr head_layout sequence_first = head_layout::sequence_first;

struct sizes {
  std::int64_t batch, heads, key_heads, queries, keys, depth, value_depth;
};

shape tensor_of(element_type type, head_layout layout, std::int64_t batch, std::int64_t heads, std::int64_t positions,
                std::int64_t depth) {
  return layout == head_layout::heads_first ? typed(type, {batch, heads, positions, depth})
                                            : typed(type, {batch, positions, heads, depth});
}

std::vector<shape> inputs_of(const attention& op, const sizes& n, element_type type) {
  return {tensor_of(type, op.query_layout, n.batch, n.heads, n.queries, n.depth),
          tensor_of(type, op.key_layout, n.batch, n.key_heads, n.keys, n.depth),
          tensor_of(type, op.value_layout, n.batch, n.key_heads, n.keys, n.value_depth)};
}

std::unique_ptr<module> plain(const attention& op, const sizes& n, element_type type = element_type::f32,
                              std::optional<shape> mask = {}) {
  auto inputs = inputs_of(op, n, type);
  if (mask) inputs.push_back(*mask);
  return fusion(inputs, [&](module& m, in p) { return std::vector<value>{m.add(op, p)}; });
}

void expect_reference(const attention& op, const sizes& n, element_type type = element_type::f32,
                      std::optional<shape> mask = {}) {
  SCOPED_TRACE(operation(op).str() + " heads " + std::to_string(n.heads) + "/" + std::to_string(n.key_heads) +
               " queries " + std::to_string(n.queries) + " keys " + std::to_string(n.keys) + " depth " +
               std::to_string(n.depth) + "/" + std::to_string(n.value_depth) + " " + std::string(name(type)) +
               (mask ? " mask " + mask->str() : ""));
  tolerance allowed = storage_bits(type) >= 32 ? tolerance{1e-4, 1e-5}
                      : type == f16            ? tolerance{2e-3, 2e-3}
                                               : tolerance{1.6e-2, 1.6e-2};
  check(*plain(op, n, type, mask), 1, 1, allowed);
}

TEST(attention, sizes_around_tiles) {
  for (std::int64_t queries : {1, 3, 8, 9, 13, 31})
    for (std::int64_t keys : {1, 3, 16, 17, 33, 64}) expect_reference({0.5}, {1, 2, 2, queries, keys, 16, 16});
  for (std::int64_t depth : {1, 20, 64})
    for (std::int64_t value_depth : {1, 24, 65})
      for (std::int64_t queries : {1, 19}) expect_reference({0.25}, {1, 1, 1, queries, 21, depth, value_depth});
}

TEST(attention, keys_beyond_one_chunk) {
  for (std::int64_t keys : {700, 2049, 7000})
    for (std::int64_t queries : {1, 3, 14}) {
      expect_reference({0.3}, {1, 2, 1, queries, keys, 16, 24});
      expect_reference({0.3, true}, {1, 1, 1, queries, keys, 16, 24});
    }
  expect_reference({0.3, true}, {1, 2, 2, 1500, 1500, 8, 8});
  expect_reference({0.05}, {1, 1, 1, 40, 600, 512, 512});  // an image's attention: few rows fit
}

TEST(attention, element_types) {
  for (element_type type : {f64, f16, bf16})
    for (std::int64_t queries : {1, 4, 21}) {
      expect_reference({0.25}, {2, 2, 1, queries, 37, 32, 32}, type);
      expect_reference({0.25, true}, {1, 2, 2, queries, 37, 20, 12}, type, typed(type, {queries, 37}));
    }
  expect_reference({0.25}, {1, 2, 2, 9, 37, 20, 12}, f16, f32({37}));
  expect_reference({0.25}, {1, 2, 2, 9, 37, 20, 12}, f64, f32({9, 1}));
  expect_reference({0.25}, {1, 2, 2, 9, 37, 20, 12}, element_type::f32, typed(f64, {37}));
}

TEST(attention, layouts) {
  for (int bits = 0; bits < 16; ++bits) {
    auto layout = [&](int bit) { return bits >> bit & 1 ? sequence_first : head_layout::heads_first; };
    attention op{0.5, false, layout(0), layout(1), layout(2), layout(3)};
    expect_reference(op, {2, 3, 3, 11, 18, 8, 12});
    expect_reference(op, {2, 6, 3, 2, 18, 8, 12});
    expect_reference(op, {2, 4, 2, 1, 18, 20, 12}, f16);
  }
}

TEST(attention, heads_that_share_keys) {
  for (std::int64_t queries : {1, 2, 7, 20})
    for (bool causal : {false, true})
      expect_reference({0.5, causal}, {2, 6, 2, queries, 23, 16, 16}, element_type::f32,
                       typed(boolean, {2, 1, queries, 23}));
}

TEST(attention, masks_of_any_dims) {
  for (element_type type : {element_type::f32, boolean, f16})
    for (const std::vector<dim>& dims :
         {std::vector<dim>{2, 3, 13, 37}, {2, 1, 1, 37}, {1, 3, 13, 1}, {13, 37}, {37}, {1}, {}, {3, 1, 1}}) {
      expect_reference({0.5}, {2, 3, 3, 13, 37, 8, 8}, element_type::f32, typed(type, dims));
      if (dims.size() < 2 || dims[dims.size() - 2] == dim(1))
        expect_reference({0.5}, {2, 3, 1, 1, 37, 8, 8}, element_type::f32, typed(type, dims));
    }
}

// All scores of a row are in registers: keys around multiples of the lanes and up to the most vectors.
TEST(attention, windows) {
  expect_reference({0.2}, {4, 3, 3, 49, 49, 32, 32}, element_type::f32, f32({3, 49, 49}));
  expect_reference({0.2}, {2, 2, 2, 49, 49, 16, 16}, element_type::f32, typed(boolean, {2, 1, 49, 49}));
  for (std::int64_t keys : {31, 64, 65, 128, 129}) expect_reference({0.2}, {1, 2, 2, 10, keys, 8, 8});
}

// Masks that compare the key's number with a limit of each row, some beyond the keys and some negative.
TEST(attention, limits_of_rows) {
  for (const bool inclusive : {false, true})
    for (const std::vector<dim>& dims :
         {std::vector<dim>{2, 1, 13, 1}, {2, 6, 13, 1}, {13, 1}, {2, 1, 1, 1}, {1, 1, 1, 1}})
      for (const std::int64_t keys : {37, 300}) {
        auto inputs = inputs_of({0.5}, {2, 6, 3, 13, keys, 8, 8}, element_type::f32);
        inputs.push_back(typed(element_type::i64, dims));
        auto m = fusion(inputs, [&](module& m, in p) {
          std::vector<dim> wide = dims;
          wide.back() = keys;
          value columns = m.add(broadcast{wide}, {m.add(iota{element_type::i64, {dim(keys)}, 0}, {})});
          const auto compare = inclusive ? scalar_function::less_equal : scalar_function::less;
          value mask = m.add(elementwise{compare}, {columns, m.add(broadcast{wide}, {p[3]})});
          return std::vector<value>{m.add(attention{0.5}, {p[0], p[1], p[2], mask})};
        });
        std::mt19937 random(5);
        std::vector<literal> data;
        for (value p : m->parameters()) data.push_back(random_literal(p.type(), random));
        std::vector<double> limits(static_cast<std::size_t>(data[3].type().element_count()));
        for (std::size_t i = 0; i < limits.size(); ++i)
          limits[i] = i % 5 == 4 ? 1e12 : 1 + static_cast<double>(i * 7 % static_cast<std::size_t>(keys));
        data[3] = literal::from_doubles(data[3].type(), limits);
        check(*m, data, tolerance{1e-4, 1e-5});
      }
}

TEST(attention, rows_that_see_nothing) {
  std::mt19937 random(3);
  for (std::int64_t queries : {2, 30})
    for (std::int64_t keys : {49, 900}) {
      attention op{0.5};
      auto m = plain(op, {1, 1, 1, queries, keys, 8, 8}, element_type::f32, f32({queries, keys}));
      std::vector<literal> inputs;
      for (value p : m->parameters()) inputs.push_back(random_literal(p.type(), random));
      auto mask = inputs[3].to_doubles();
      // Row 0 sees no key, row 1 the last one.
      std::fill_n(mask.begin(), 2 * keys - 1, -inf);
      inputs[3] = literal::from_doubles(inputs[3].type(), mask);
      check(*m, inputs, tolerance{1e-4, 1e-5});
    }
  expect_reference({1, true}, {1, 2, 2, 5, 3, 8, 8});
  expect_reference({1, true}, {1, 2, 2, 25, 3, 8, 8});
  expect_reference({1}, {1, 2, 2, 5, 0, 8, 8});
  expect_reference({1}, {1, 2, 2, 25, 0, 8, 8});
}

TEST(attention, scores_far_apart) {
  auto m = plain({40}, {1, 1, 1, 20, 800, 16, 16});
  check(*m, 5, 3, tolerance{1e-4, 1e-4});
}

TEST(attention, prologues_and_epilogues) {
  for (std::int64_t queries : {2, 17}) {
    auto m = fusion({f32({queries, 3, 2, 8}), f32({2, 1, 1, 29}), f32({1, queries, 2, 8})}, [&](module& m, in p) {
      // Queries, keys and values are parts of one tensor. The mask is computed, and the sum after the attention is also
      // output halved.
      auto part = [&](std::int64_t i) {
        return m.add(reshape{{1, queries, 2, 8}},
                     {m.add(slice{{0, i, 0, 0}, {queries, 1, 2, 8}, {1, 1, 1, 1}}, {p[0]})});
      };
      value bias = m.add(elementwise{scalar_function::neg},
                         {m.add(slice{{0, 0, 0, 0}, {1, 1, 1, queries}, {1, 1, 1, 1}}, {p[1]})});
      value y = m.add(attention{0.5, true, sequence_first, sequence_first, sequence_first, sequence_first},
                      {part(0), m.add(elementwise{scalar_function::neg}, {part(1)}), part(2), bias});
      value sum = m.add(elementwise{scalar_function::add}, {y, p[2]});
      value half = m.add(elementwise{scalar_function::tanh}, {sum});
      return std::vector<value>{sum, half, m.add(convert{f16}, {sum})};
    });
    check(*m, 1, 1, tolerance{2e-3, 1e-4});
  }
}

}  // namespace
}  // namespace kiln::test
