#include "aot/passes/constant_folding.hpp"

#include <algorithm>
#include <optional>

#include "aot/passes/facts.hpp"
#include "aot/passes/quantized_matrix.hpp"
#include "aot/passes/rewrite.hpp"
#include "ir/cancellation.hpp"

namespace kiln {
namespace {

bool is_empty(const shape& type) {
  return std::ranges::any_of(type.dims, [](const dim& d) { return d == 0; }) && type.is_static();
}

// Returns the number of bytes of the constants behind a value that is a constant, has no elements, or broadcasts a
// constant (broadcast, iota). None for other values.
std::optional<std::size_t> source_bytes_of(value v, std::size_t limit) {
  if (const literal* data = module::constant(v)) return data->bytes().size();
  if (is_empty(v.type())) return 0;
  const instruction& at = *v.producer;
  bool spreads = at.op().is<broadcast>() || at.op().is<iota>();
  if (!spreads || !v.type().is_static() || v.type().bytes() > limit) return std::nullopt;
  std::size_t bytes = 0;
  for (value input : at.inputs()) {
    auto behind = source_bytes_of(input, limit);
    if (!behind) return std::nullopt;
    bytes += *behind;
  }
  return bytes;
}

// Evaluates such a value. The expanded copy is dropped after its use.
literal evaluate_spread(value v) {
  if (const literal* data = module::constant(v)) return *data;
  if (is_empty(v.type())) return literal(v.type(), {});
  std::vector<literal> inputs;
  for (value input : v.producer->inputs()) inputs.push_back(evaluate_spread(input));
  return v.producer->op().evaluate(inputs)[0];
}

bool foldable(const module& m, const instruction& at) {
  const operation& op = at.op();
  if (at.inputs().empty() || !at.bodies().empty()) return false;
  // Check the kinds of the inputs first: this decides for nearly every instruction.
  const bool known = std::ranges::all_of(at.inputs(), [](value input) {
    const operation& from = input.producer->op();
    return from.is<constant>() || from.is<broadcast>() || from.is<iota>() || is_empty(input.type());
  });
  if (!known && !std::ranges::any_of(at.outputs(), is_empty)) return false;
  if (op.is<code_object>() || op.is<bounded>() || op.is<data_sizes>() || stays_packed(m, at)) return false;
  if (!std::ranges::all_of(at.outputs(), [](const shape& out) { return out.is_static(); })) return false;
  if (std::ranges::all_of(at.outputs(), is_empty)) return true;
  // A broadcast that only adds dims of 1 acts as a reshape of its constant.
  if (op.is<broadcast>())
    return at.inputs()[0].producer->op().is<constant>() &&
           at.inputs()[0].type().elements() == at.outputs()[0].elements();
  return known;
}

// Returns the common element of a literal whose elements are all equal, if it is worth storing as a scalar.
std::optional<literal> repeated_element(const literal& data) {
  if (data.type().rank() == 0 || storage_bits(data.type().type) < 8 || !data.splat()) return std::nullopt;
  auto first = data.bytes().first(storage_bytes(data.type().type, 1));
  return literal({data.type().type, {}}, std::vector<std::byte>(first.begin(), first.end()));
}

// Returns nullopt if the result would take more than `limit` bytes and more than the inputs.
std::optional<std::vector<literal>> fold(const instruction& at, std::size_t limit, folding_budget* budget) {
  std::vector<literal> results, inputs;
  if (std::ranges::all_of(at.outputs(), is_empty)) {
    for (const shape& out : at.outputs()) results.emplace_back(out, std::vector<std::byte>{});
    return results;
  }
  std::size_t result_bytes = 0, source_bytes = 0;
  for (const shape& out : at.outputs()) result_bytes += out.bytes();
  for (value input : at.inputs()) {
    auto behind = source_bytes_of(input, std::max(limit, result_bytes));
    if (!behind) return std::nullopt;
    source_bytes += *behind;
  }
  if (result_bytes > limit && result_bytes > source_bytes) return std::nullopt;
  const bool shares_bytes = at.op().is<reshape>() || at.op().is<broadcast>();
  if (!shares_bytes && budget && !budget->take(at)) return std::nullopt;
  for (value input : at.inputs()) inputs.push_back(evaluate_spread(input));
  if (shares_bytes) return std::vector{inputs[0].reshaped(at.outputs()[0].dims)};
  return at.op().evaluate(inputs);
}

value add_folded(module& m, place before, literal data, const std::string& origin) {
  auto element = repeated_element(data);
  auto dims = data.type().dims;
  value made = m.add_constant(element ? *std::move(element) : std::move(data));
  made.producer->set_origin(origin);
  if (!element) return made;
  made = insert_at(m, before, broadcast{std::move(dims)}, {made});
  made.producer->set_origin(origin);
  return made;
}

}  // namespace

bool constant_folding::apply(module& m) const {
  bool changed = false;
  auto& list = m.instructions();
  for (place next = list.begin(); next != list.end();) {
    check_stop();
    const place here = next++;
    instruction& at = *here;
    if (!m.has_uses(&at)) continue;
    if (const auto* c = at.op().get_if<constant>()) {
      if (!repeated_element(c->data)) continue;
      m.replace(at.output(), add_folded(m, next, c->data, at.origin()));
      changed = true;
      continue;
    }
    if (!foldable(m, at)) continue;
    auto results = fold(at, limit_bytes, budget);
    if (!results) continue;
    for (std::uint32_t i = 0; i < results->size(); ++i)
      m.replace({&at, i}, add_folded(m, here, std::move((*results)[i]), at.origin()));
    changed = true;
  }
  if (changed) m.erase_dead();
  return changed;
}

}  // namespace kiln
