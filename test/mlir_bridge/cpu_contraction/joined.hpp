// Fusions with inner anchors: the normalization of a product's rows, a second product of the same rows, two caches.
#pragma once

#include <algorithm>
#include <memory>

#include "ir/ops/all.hpp"
#include "ir/ops/cache_update.hpp"
#include "test/mlir_bridge/cpu_contraction/fusions.hpp"

namespace kiln::test {

enum class joined { normalization, second, both };

// silu(rows · gate) * (rows · up), or rows · gate, where the rows are normalized unless `parts` is `second`.
inline std::unique_ptr<module> joined_product(std::int64_t m, std::int64_t k, std::int64_t n, joined parts,
                                              element_type type = element_type::f16, bool transposed = false) {
  auto made = std::make_unique<module>("kernel");
  value rows = made->add_parameter("rows", shape_of(type, {m, k}));
  if (parts != joined::second) {
    const value wide = made->add(convert{element_type::f32}, {rows});
    rows = made->add(convert{type}, {made->add(normalize{{1}, 1e-5, false}, {wide})});
  }
  const auto product = [&](const char* name) {
    const value weights = made->add_parameter(name, shape_of(type, transposed ? dims_of{n, k} : dims_of{k, n}));
    return made->add(dot{.transpose_b = transposed, .type = type}, {rows, weights});
  };
  value result = product("gate");
  if (parts != joined::normalization) {
    const value silu = made->add(elementwise{scalar_function::mul},
                                 {result, made->add(elementwise{scalar_function::sigmoid}, {result})});
    result = made->add(elementwise{scalar_function::mul}, {silu, product("up")});
  }
  made->set_outputs({result}, {"y"});
  return made;
}

// Updates of two caches at the same position, the first one's rows negated.
inline std::unique_ptr<module> joined_caches() {
  auto made = std::make_unique<module>("kernel");
  const value position = made->add_parameter("position", shape_of(element_type::i64, {1}));
  std::vector<value> results;
  for (const char* name : {"keys", "values"}) {
    const value cache = made->add_parameter(name, shape_of(element_type::f16, {2, 3, 7, 16}));
    value rows = made->add_parameter(std::string(name) + "_rows", shape_of(element_type::f16, {2, 3, 2, 16}));
    if (results.empty()) rows = made->add(elementwise{scalar_function::neg}, {rows});
    results.push_back(made->add(cache_update{2}, {cache, rows, position}));
  }
  made->set_outputs(results, {"keys", "values"});
  return made;
}

// Attention of one query for each of `batch` sequences to two caches, to which its own key (negated) and value are
// appended. `layers`: caches of several layers in one tensor, of which attention reads layer 1; 0: of one layer.
inline std::unique_ptr<module> joined_attention(std::int64_t batch, std::int64_t room, std::int64_t layers,
                                                element_type type = element_type::f16, std::int64_t depth = 64) {
  constexpr std::int64_t heads = 8, key_heads = 2;
  auto made = std::make_unique<module>("kernel");
  const value position = made->add_parameter("position", shape_of(element_type::i64, {1}));
  std::vector<value> results, read;
  const value layer = layers ? made->add_parameter("layer", shape_of(element_type::i64, {1})) : value{};
  for (const char* name : {"keys", "values"}) {
    const std::int64_t all = std::max<std::int64_t>(layers, 1) * batch;
    const value cache = made->add_parameter(name, shape_of(type, {all, key_heads, room, depth}));
    value rows = made->add_parameter(std::string(name) + "_rows", shape_of(type, {batch, key_heads, 1, depth}));
    if (results.empty()) rows = made->add(elementwise{scalar_function::neg}, {rows});
    std::vector<value> inputs{cache, rows, position};
    if (layers) inputs.push_back(layer);
    results.push_back(made->add(cache_update{2}, inputs));
    const std::vector<dim> part{batch, key_heads, room, depth};
    read.push_back(layers ? made->add(slice{{batch, 0, 0, 0}, part, {1, 1, 1, 1}}, {results.back()}) : results.back());
  }
  const value query = made->add_parameter("query", shape_of(type, {batch, heads, 1, depth}));
  results.push_back(made->add(attention{0.125}, {query, read[0], read[1]}));
  made->set_outputs(results, {"keys", "values", "y"});
  return made;
}

}  // namespace kiln::test
