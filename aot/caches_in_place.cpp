#include "aot/caches_in_place.hpp"

#include <algorithm>
#include <limits>

#include "ir/ops/cache_update.hpp"
#include "ir/ops/contraction.hpp"
#include "ir/ops/elementwise.hpp"
#include "ir/ops/movement.hpp"
#include "ir/ops/reduction.hpp"
#include "ir/ops/structure.hpp"

namespace kiln {
namespace {

struct cache {
  value input, result;            // the output is the result
  instruction* append = nullptr;  // the Concat
  std::size_t output = 0, axis = 0;
};

bool is_zero(value v) {
  const literal* data = module::constant(v);
  if (v.producer->op().is<broadcast>()) return is_zero(v.producer->inputs()[0]);
  return data && data->type().element_count() == 1 && data->at(0) == 0;
}

// GroupQueryAttention moves the rows of shorter sequences together and clears what is left (aot/onnx/ops/). All
// sequences of a decoding step have the same length, so this changes nothing. Returns what is moved, or `v`.
value without_compaction(value v, std::size_t axis) {
  const auto* clear = v.producer->op().get_if<elementwise>();
  if (!clear || clear->function != scalar_function::where || !is_zero(v.producer->inputs()[2])) return v;
  const value moved = v.producer->inputs()[1];
  const auto* move = moved.producer->op().get_if<gather_elements>();
  return move && move->axis == static_cast<std::int64_t>(axis) ? moved.producer->inputs()[0] : v;
}

std::optional<cache> find_cache(module& m, const cache_port& port) {
  const auto parameters = m.parameters();
  const auto input = std::ranges::find(parameters, port.input, [](value v) { return module::parameter_name(v); });
  const auto output = std::ranges::find(m.output_names(), port.output);
  if (input == parameters.end() || output == m.output_names().end() || port.axis == 0) return std::nullopt;
  const auto place = static_cast<std::size_t>(output - m.output_names().begin());
  const value result = m.outputs()[place];
  cache found{*input, result, without_compaction(result, port.axis).producer, place, port.axis};
  const auto* op = found.append->op().get_if<concat>();
  const bool appends = op && op->axis == static_cast<std::int64_t>(port.axis) && found.append->inputs().size() == 2 &&
                       found.append->inputs()[0] == found.input && found.append->inputs()[1] != found.input;
  // A cache that nobody reads would not be updated.
  const bool fits = appends && found.input.producer->users().size() == 1 && !result.producer->users().empty() &&
                    std::ranges::count(m.outputs(), result) == 1 &&
                    std::ranges::find(m.outputs(), found.input) == m.outputs().end() &&
                    found.input.type().dims[port.axis].is_symbol() && storage_bits(found.input.type().type) >= 8;
  return fits ? std::optional(found) : std::nullopt;
}

void put_in_place(module& m, const cache& c, value length) {
  shape type = c.input.type();
  type.dims[c.axis] = dim::symbol(cache_room);
  const std::size_t rank = type.rank();
  m.set_operation(c.input.producer, parameter{module::parameter_name(c.input), type.type, type.dims});
  const value updated =
      m.insert(c.append, cache_update{static_cast<std::int64_t>(c.axis)}, {c.input, c.append->inputs()[1], length});
  updated.producer->set_origin(c.append->origin());
  const value present = m.insert(
      c.append,
      slice{std::vector<std::int64_t>(rank, 0), c.append->outputs()[0].dims, std::vector<std::int64_t>(rank, 1)},
      {updated});
  present.producer->set_origin(c.append->origin());
  m.replace(c.result, present);
  if (c.append->output() != c.result) m.replace(c.append->output(), present);
}

// Computes the logits of one id of a step instead of all. Returns them, [batch, vocabulary].
std::optional<value> keep_one_row(module& m, const std::string& logits) {
  const auto name = std::ranges::find(m.output_names(), logits);
  if (name == m.output_names().end()) return std::nullopt;
  const value all = m.outputs()[static_cast<std::size_t>(name - m.output_names().begin())];
  if (!all.producer->op().is<reshape>() || all.type().rank() != 3 || !all.producer->users().empty())
    return std::nullopt;
  const instruction* product = all.producer->inputs()[0].producer;
  const auto* op = product->op().get_if<dot>();
  if (!op || op->transpose_a || product->users().size() != 1 || product->outputs()[0].rank() != 2) return std::nullopt;
  const value rows = product->inputs()[0], weights = product->inputs()[1];
  const dim batch = all.type().dims[0], sequence = all.type().dims[1], width = rows.type().dims.back();
  if (!(rows.type().dims[0] == batch * sequence)) return std::nullopt;
  const value index = m.add_parameter(logits_row, {element_type::i64, {1}});
  const value each = m.add(reshape{{batch, sequence, width}}, {rows});
  const value one = m.add(reshape{{batch, width}}, {m.add(gather{1}, {each, index})});
  const value kept = m.add(dot{*op}, {one, weights});
  kept.producer->set_origin(product->origin());
  std::vector<value> outputs = m.outputs();
  std::ranges::replace(outputs, all, m.add(reshape{{batch, 1, all.type().dims[2]}}, {kept}));
  m.set_outputs(std::move(outputs), m.output_names());
  return kept;
}

void add_next_ids(module& m, value logits, const std::string& ids) {
  const auto parameters = m.parameters();
  const auto input = std::ranges::find(parameters, ids, [](value v) { return module::parameter_name(v); });
  if (input == parameters.end() || input->type().rank() != 2) return;
  const shape& type = logits.type();
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  const value nothing =
      m.add(broadcast{type.dims}, {m.add_constant(literal::from_doubles({type.type, {}}, std::vector{lowest}))});
  const value bad = m.add(elementwise{scalar_function::is_nan}, {logits});
  const value sound = m.add(elementwise{scalar_function::where}, {bad, nothing, logits});
  value best = m.add(arg_reduce{.largest = true, .axis = 1, .keep_dims = true}, {sound});
  if (best.type().type != input->type().type) best = m.add(convert{input->type().type}, {best});
  std::vector<value> outputs = m.outputs();
  std::vector<std::string> names = m.output_names();
  outputs.push_back(best), names.push_back(next_ids);
  m.set_outputs(std::move(outputs), std::move(names));
}

}  // namespace

std::optional<program> with_caches_in_place(const program& optimized, std::span<const cache_port> ports,
                                            const std::string& logits, const std::string& ids) {
  program steps = optimized.clone();
  module& m = steps.main();
  std::vector<cache> found;
  for (const cache_port& port : ports)
    if (auto c = find_cache(m, port)) found.push_back(*c);
  const bool taken = std::ranges::count(m.output_names(), std::string(next_ids)) > 0 ||
                     steps.symbols.contains(cache_room) || std::ranges::any_of(m.parameters(), [](value v) {
                       return module::parameter_name(v) == cache_length || module::parameter_name(v) == logits_row;
                     });
  const auto rows = [](const cache& c) { return c.input.type().dims[c.axis]; };
  if (found.empty() || taken ||
      !std::ranges::all_of(found, [&](const cache& c) { return rows(c) == rows(found.front()); }))
    return std::nullopt;
  steps.metadata[cache_length] = rows(found.front()).str();
  std::vector<value> outputs;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < m.outputs().size(); ++i) {
    if (std::ranges::find(found, i, &cache::output) != found.end()) continue;
    outputs.push_back(m.outputs()[i]);
    names.push_back(m.output_names()[i]);
  }
  m.set_outputs(std::move(outputs), std::move(names));
  steps.symbols.emplace(cache_room, dim_range{});
  const value length = m.add_parameter(cache_length, {element_type::i64, {1}});
  for (const cache& c : found) put_in_place(m, c, length);
  if (const auto kept = keep_one_row(m, logits)) add_next_ids(m, *kept, ids);
  m.erase_dead();
  m.sort();
  steps.validate();
  return steps;
}

}  // namespace kiln
