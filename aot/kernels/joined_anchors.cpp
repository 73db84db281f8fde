#include "aot/kernels/joined_anchors.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "aot/kernels/traits.hpp"
#include "aot/passes/facts.hpp"
#include "ir/ops/all.hpp"
#include "ir/ops/cache_update.hpp"

namespace kiln {
namespace {

bool is_short_float(element_type type) { return type == element_type::f16 || type == element_type::bf16; }

// Returns the only product that v is computed from, elementwise and with constants otherwise; null if there is another
// operand, or none. Takes the operations on the way off `budget`.
const instruction* product_of(value v, int& budget) {
  const instruction& at = *v.producer;
  if (is_product_of_few_rows(at)) return &at;
  if (!keeps_indices(at.op()) || --budget < 0) return nullptr;
  const instruction* found = nullptr;
  for (value input : at.inputs()) {
    if (is_constant_like(input)) continue;
    const instruction* product = product_of(input, budget);
    if (!product || (found && found != product)) return nullptr;
    found = product;
  }
  return found;
}

// Returns the two products that the operation combines.
std::optional<joined_anchors::pair> products_of(const instruction& at) {
  constexpr int most_operations = 8;
  if (!at.op().is<elementwise>() || at.inputs().size() != 2) return std::nullopt;
  int budget = most_operations;
  const instruction *a = product_of(at.inputs()[0], budget), *b = a ? product_of(at.inputs()[1], budget) : nullptr;
  const bool alike = a && b && a != b && a->op() == b->op() && a->inputs()[0] == b->inputs()[0] &&
                     a->outputs()[0] == b->outputs()[0] && a->inputs()[1].type() == b->inputs()[1].type();
  return alike ? std::optional(joined_anchors::pair{a, b, true}) : std::nullopt;
}

value before_conversions(value v) {
  while (v.producer->op().is<convert>()) v = v.producer->inputs()[0];
  return v;
}

// The update of a cache whose result, or a part of it, is `v`, and the operation that takes the part. Null if `v` is
// something else, or if anything but `reader` reads the part.
std::pair<const instruction*, const instruction*> updated_cache_of(value v, const instruction& reader) {
  const instruction* part = nullptr;
  if (v.producer->op().is<slice>()) {
    part = v.producer;
    if (part->users().size() != 1 || part->users()[0] != &reader) return {};
    v = part->inputs()[0];
  }
  if (!v.producer->op().is<cache_update>()) return {};
  return {v.producer, part};
}

// Returns the updates of the keys and values of an attention of one query with the later of them, as a pair with it.
std::optional<joined_anchors::pair> appended_of(const instruction& at, std::span<const joined_anchors::pair> updates) {
  const auto* op = at.op().get_if<attention>();
  if (!op || !is_short_float(at.inputs()[0].type().type)) return std::nullopt;
  const shape& query = at.inputs()[0].type();
  if (!(query.dims[head_axes(op->query_layout, query.rank()).position] == dim(1))) return std::nullopt;
  const auto [keys, of_keys] = updated_cache_of(at.inputs()[1], at);
  const auto [of_cache, of_values] = updated_cache_of(at.inputs()[2], at);
  if (!keys || !of_cache) return std::nullopt;
  const auto both = std::ranges::find_if(updates, [&, k = keys, v = of_cache](const joined_anchors::pair& pair) {
    return (pair.inner == k && pair.own == v) || (pair.inner == v && pair.own == k);
  });
  const auto axis = static_cast<std::size_t>(keys->op().get_if<cache_update>()->axis);
  if (both == updates.end() || !(keys->inputs()[1].type().dims[axis] == dim(1)) ||
      keys->inputs()[1].type().type != query.type)
    return std::nullopt;
  joined_anchors::pair found{both->own, &at, false};
  for (const instruction* part : {of_keys, of_values})
    if (part) found.between.push_back(part);
  return found;
}

}  // namespace

bool is_product_of_few_rows(const instruction& at) {
  constexpr std::int64_t few = 64;
  const auto* d = at.op().get_if<dot>();
  if (!d || d->transpose_a || at.outputs()[0].rank() != 2 || !is_short_float(at.inputs()[0].type().type)) return false;
  const dim& rows = at.outputs()[0].dims[0];
  return !rows.is_static() || rows.value() <= few;
}

const instruction* root_mean_square_of(value v) {
  v = before_conversions(v);
  const auto* n = v.producer->op().get_if<normalize>();
  const bool found =
      n && !n->centered && n->axes.size() == 1 && n->axes[0] + 1 == static_cast<std::int64_t>(v.type().rank());
  return found ? v.producer : nullptr;
}

joined_anchors find_joined_anchors(const module& m) {
  joined_anchors found;
  std::map<std::string, const instruction*> updates;
  for (const instruction& at : m.instructions()) {
    if (auto products = products_of(at)) found.pairs.push_back(*products);
    if (!at.op().is<cache_update>()) continue;
    // Updates with equal keys differ in the cache and in the rows only.
    std::string key = at.op().str() + at.inputs()[0].type().str() + at.inputs()[1].type().str();
    for (std::size_t k = 2; k < at.inputs().size(); ++k)
      key += "/" + std::to_string(reinterpret_cast<std::uintptr_t>(at.inputs()[k].producer)) + "." +
             std::to_string(at.inputs()[k].index);
    const auto [other, fresh] = updates.try_emplace(key, &at);
    if (fresh) continue;
    found.pairs.push_back({other->second, &at, false});
    updates.erase(other);
  }
  const std::vector<joined_anchors::pair> pairs = found.pairs;
  for (const instruction& at : m.instructions())
    if (auto appended = appended_of(at, pairs)) found.pairs.push_back(std::move(*appended));
  for (const instruction& at : m.instructions()) {
    if (!is_product_of_few_rows(at)) continue;
    const instruction* normalization = root_mean_square_of(at.inputs()[0]);
    // A product of normalized rows reads the rows themselves, so they must have its type.
    if (!normalization || before_conversions(normalization->inputs()[0]).type().type != at.inputs()[0].type().type)
      continue;
    found.pairs.push_back({normalization, &at, true});
    for (value v = normalization->inputs()[0]; v.producer->op().is<convert>(); v = v.producer->inputs()[0])
      found.widened.insert(v.producer);
  }
  return found;
}

}  // namespace kiln
