// A small decoder for tests: it embeds ids, adds the sum of all embeddings so far to each, and multiplies with the
// embedding again. The sum over the past makes every answer depend on all ids.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "ir/ops/all.hpp"
#include "ir/program.hpp"

namespace kiln::testing {

inline constexpr std::int64_t toy_vocabulary = 11, toy_width = 4;

struct toy_names {
  std::string ids = "input_ids", first_past = "past_key_values.0.key", second_past = "past_key_values.0.value",
              logits = "logits", first_present = "present.0.key", second_present = "present.0.value";
};

inline double toy_weight(std::int64_t i) { return std::sin(static_cast<double>(i * i + 1)); }

// What hides padding: nothing, the mask of each row, or (a fault) that of the shortest row in all rows.
enum class toy_mask { none, of_each_row, of_the_shortest_row };

inline program toy_decoder(const toy_names& names = {}, std::int64_t least_past = 0, toy_mask mask = toy_mask::none) {
  program p;
  const dim batch = dim::symbol("batch"), sequence = dim::symbol("sequence"), past = dim::symbol("past");
  p.symbols["batch"] = {1, 8, {}};
  p.symbols["sequence"] = {1, 64, {}};
  p.symbols["past"] = {least_past, 64, {}};
  const auto f32 = [](std::vector<dim> dims) { return shape{element_type::f32, std::move(dims)}; };
  module& m = p.main();
  std::vector<double> weights;
  for (std::int64_t i = 0; i < toy_vocabulary * toy_width; ++i) weights.push_back(toy_weight(i));
  const value ids = m.add_parameter(names.ids, {element_type::i64, {batch, sequence}});
  const value first = m.add_parameter(names.first_past, f32({batch, past, toy_width}));
  const value second = m.add_parameter(names.second_past, f32({batch, past, toy_width}));
  const value table = m.add_constant(literal::from_doubles(f32({toy_vocabulary, toy_width}), weights));
  const value embedded = m.add(gather{}, {table, ids});
  const value squared = m.add(elementwise{scalar_function::mul}, {embedded, embedded});
  const value keys = m.add(concat{1}, {first, embedded}), values = m.add(concat{1}, {second, squared});
  value seen = m.add(elementwise{scalar_function::sub}, {keys, values});
  if (mask != toy_mask::none) {
    const dim total = past + sequence;
    value counts =
        m.add(convert{element_type::f32}, {m.add_parameter("attention_mask", {element_type::i64, {batch, total}})});
    if (mask == toy_mask::of_the_shortest_row)
      counts = m.add(broadcast{{batch, total}}, {m.add(reduce{reduction_kind::min, {0}}, {counts})});
    counts = m.add(broadcast{{batch, total, toy_width}}, {m.add(reshape{{batch, total, 1}}, {counts})});
    seen = m.add(elementwise{scalar_function::mul}, {seen, counts});
  }
  value sum = m.add(reduce{reduction_kind::sum, {1}}, {seen});
  sum = m.add(broadcast{{batch, sequence, toy_width}}, {m.add(reshape{{batch, 1, toy_width}}, {sum})});
  const value mixed = m.add(elementwise{scalar_function::add}, {embedded, sum});
  const value flat = m.add(reshape{{batch * sequence, toy_width}}, {mixed});
  const value scores = m.add(dot{.transpose_b = true}, {flat, table});
  m.set_outputs({m.add(reshape{{batch, sequence, toy_vocabulary}}, {scores}), keys, values},
                {names.logits, names.first_present, names.second_present});
  p.validate();
  return p;
}

// What the model above answers after `ids`.
inline std::vector<double> toy_logits(const std::vector<std::int64_t>& ids) {
  std::vector<double> state(toy_width);
  for (std::int64_t id : ids)
    for (std::int64_t i = 0; i < toy_width; ++i) {
      const double x = toy_weight(id * toy_width + i);
      state[static_cast<std::size_t>(i)] += x - x * x;
    }
  std::vector<double> logits;
  for (std::int64_t v = 0; v < toy_vocabulary; ++v) {
    double sum = 0;
    for (std::int64_t i = 0; i < toy_width; ++i)
      sum +=
          toy_weight(v * toy_width + i) * (state[static_cast<std::size_t>(i)] + toy_weight(ids.back() * toy_width + i));
    logits.push_back(sum);
  }
  return logits;
}

}  // namespace kiln::testing
