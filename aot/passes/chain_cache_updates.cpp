#include "aot/passes/chain_cache_updates.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "aot/passes/facts.hpp"
#include "aot/passes/rewrite.hpp"
#include "aot/rewrite_log.hpp"
#include "ir/ops/cache_update.hpp"

namespace kiln {

namespace {

// A layer's row, scattered into its cache.
struct layer_update {
  value scattered, rows, position;
  std::size_t axis = 0;
};

value without_reshapes(value v) {
  while (v.producer->op().is<reshape>()) v = v.producer->inputs()[0];
  return v;
}

// The tensor of which `v` is part `layer` along the first axis, or null.
value stack_of(value v, std::int64_t layer) {
  const instruction& i = *without_reshapes(v).producer;
  if (i.inputs().empty()) return {};
  const value stack = i.inputs()[0];
  const std::vector<dim>& dims = stack.type().dims;
  if (dims.empty() || !(v.type().elements() * dims[0] == stack.type().elements())) return {};
  if (const auto* op = i.op().get_if<gather>()) {
    const auto index = splat_of(i.inputs()[1]);
    return op->axis == 0 && index && *index == static_cast<double>(layer) ? stack : value{};
  }
  const auto* op = i.op().get_if<slice>();
  if (!op || op->starts[0] != layer || !(op->lengths[0] == dim(1)) || op->steps[0] != 1) return {};
  for (std::size_t axis = 1; axis < dims.size(); ++axis)
    if (op->starts[axis] != 0 || !(op->lengths[axis] == dims[axis]) || op->steps[axis] != 1) return {};
  return stack;
}

// A scatter that replaces one row of its first input along an axis that is not the first, at one position for all.
std::optional<layer_update> find_row(value scattered) {
  const auto* op = scattered.producer->op().get_if<scatter_elements>();
  if (!op || op->reduction != scatter_reduction::none) return std::nullopt;
  const value indices = scattered.producer->inputs()[1], rows = scattered.producer->inputs()[2];
  const std::vector<dim>& dims = scattered.type().dims;
  const auto axis = static_cast<std::size_t>(normalize_axis(op->axis, dims.size()));
  value position = along_one_axis(indices, axis);
  if (!position) return std::nullopt;
  position = without_reshapes(position);
  if (axis == 0 || !position.type().is_static() || position.type().element_count() != 1 ||
      !(indices.type().dims == rows.type().dims) || !dims[axis].is_static() || storage_bits(rows.type().type) < 8)
    return std::nullopt;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (!(rows.type().dims[i] == (i == axis ? dim(1) : dims[i]))) return std::nullopt;
  return layer_update{scattered, rows, position, axis};
}

std::optional<layer_update> find_update(value stacked, value stack, std::int64_t layer) {
  auto found = find_row(without_reshapes(stacked));
  if (!found || !(stack_of(found->scattered.producer->inputs()[0], layer) == stack)) return std::nullopt;
  return found;
}

// The updates of all layers whose results `joined` stacks; empty if it does something else.
std::vector<layer_update> find_updates(const instruction& joined, std::size_t least_bytes) {
  const auto* op = joined.op().get_if<concat>();
  const shape& type = joined.outputs()[0];
  if (!op || normalize_axis(op->axis, type.rank()) != 0 || joined.inputs().size() < 2) return {};
  const value first = without_reshapes(joined.inputs()[0]);
  if (!first.producer->op().is<scatter_elements>()) return {};
  const value stack = stack_of(first.producer->inputs()[0], 0);
  if (!stack || !(stack.type() == type) || !(type.dims[0] == dim(static_cast<std::int64_t>(joined.inputs().size()))))
    return {};
  std::vector<layer_update> found;
  for (value stacked : joined.inputs()) {
    auto update = find_update(stacked, stack, static_cast<std::int64_t>(found.size()));
    const bool alike = update && (found.empty() || (found[0].position == update->position &&
                                                    found[0].scattered.type() == update->scattered.type() &&
                                                    found[0].axis == update->axis));
    if (!alike || !update->scattered.type().is_static() || update->scattered.type().bytes() < least_bytes) return {};
    found.push_back(*update);
  }
  return found;
}

// The position as i64 [1], as ScatterElements reads it: a negative one counts from the end.
value position_of(module& m, place before, const layer_update& update) {
  rewriter write(m, before);
  const value given = write.convert_to(write.reshape_to(update.position, {1}), element_type::i64);
  const auto number = [&](std::int64_t n) { return write.splat(given.type(), static_cast<double>(n)); };
  const value negative = write.apply(scalar_function::less, {given, number(0)});
  const value wrapped =
      write.apply(scalar_function::add, {given, number(update.scattered.type().dims[update.axis].value())});
  return write.apply(scalar_function::where, {negative, wrapped, given});
}

void chain(module& m, const instruction& joined, const std::vector<layer_update>& updates) {
  const auto at = [&](value v) {
    return std::ranges::find_if(m.instructions(), [&](const instruction& i) { return &i == v.producer; });
  };
  const shape& of_layer = updates[0].scattered.type();
  const std::int64_t batches = of_layer.dims[0].value();
  std::vector<dim> all = of_layer.dims;
  all[0] = all[0] * dim(static_cast<std::int64_t>(updates.size()));
  const auto begin = at(updates[0].scattered);
  const value position = position_of(m, begin, updates[0]);
  const value stack = stack_of(updates[0].scattered.producer->inputs()[0], 0);
  value state = rewriter(m, begin).reshape_to(stack, all);
  for (std::size_t layer = 0; layer < updates.size(); ++layer) {
    const layer_update& update = updates[layer];
    rewriter write(m, at(update.scattered));
    const value number = write.constant(literal::from_int64({static_cast<std::int64_t>(layer)}));
    state = write.add(cache_update{static_cast<std::int64_t>(update.axis)}, {state, update.rows, position, number});
    slice own{std::vector<std::int64_t>(all.size(), 0), of_layer.dims, std::vector<std::int64_t>(all.size(), 1)};
    own.starts[0] = static_cast<std::int64_t>(layer) * batches;
    m.replace(update.scattered, write.add(own, {state}));
  }
  value result{const_cast<instruction*>(&joined), 0};
  m.replace(result, rewriter(m, at(result)).reshape_to(state, result.type().dims));
}

// Makes a scatter of one row into an input of the program an update of this input. A cache of open size counts as
// large.
bool update_input(module& m, instruction& i, std::size_t least_bytes) {
  if (!i.op().is<scatter_elements>()) return false;
  const value cache = i.inputs()[0];
  const auto update = find_row(i.output());
  if (!update || !cache.producer->op().is<parameter>() ||
      (cache.type().is_static() && cache.type().bytes() < least_bytes))
    return false;
  const auto at = std::ranges::find_if(m.instructions(), [&](const instruction& other) { return &other == &i; });
  const value position = position_of(m, at, *update);
  const cache_update op{static_cast<std::int64_t>(update->axis)};
  m.replace(update->scattered, rewriter(m, at).add(op, {cache, update->rows, position}));
  return true;
}

}  // namespace

bool chain_cache_updates::apply(module& m) const {
  bool changed = false;
  for (instruction& i : m.instructions()) {
    const auto updates = find_updates(i, least_bytes);
    if (updates.empty()) continue;
    if (log) log->fired(name(), "stacked_caches", i.origin());
    chain(m, i, updates);
    changed = true;
  }
  if (changed) m.erase_dead();
  for (instruction& i : m.instructions()) {
    if (!update_input(m, i, least_bytes)) continue;
    if (log) log->fired(name(), "own_cache", i.origin());
    changed = true;
  }
  if (!changed) return false;
  m.erase_dead();
  m.sort();
  return true;
}

}  // namespace kiln
