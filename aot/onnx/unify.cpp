#include "aot/onnx/unify.hpp"

#include <algorithm>
#include <numeric>

#include "aot/onnx/symbolic.hpp"
#include "ir/bind_shapes.hpp"
#include "ir/error.hpp"

namespace kiln::onnx_import {
namespace {

// Removes the constant factor and the atoms that all terms share. These are not zero.
dim primitive(const dim& d) {
  auto terms = d.terms();
  std::int64_t factor = 0;
  dim_product shared = terms.begin()->first;
  for (const auto& [atoms, c] : terms) {
    factor = std::gcd(factor, c);
    dim_product both;
    std::set_intersection(shared.begin(), shared.end(), atoms.begin(), atoms.end(), std::back_inserter(both),
                          dim_atom_order{});
    shared = both;
  }
  dim quotient;
  return divides_exactly(d, dim::from(dim_terms{{shared, factor}}), quotient) ? quotient : d;
}

bool occurs_elsewhere(const dim_terms& terms, const dim_product& here, const std::string& symbol) {
  return std::ranges::any_of(terms, [&](const auto& term) {
    return term.first != here && dim::from(dim_terms{{term.first, 1}}).symbols().contains(symbol);
  });
}

}  // namespace

std::optional<std::pair<std::string, dim>> make_equal(const dim& a, const dim& b, const dim_facts& facts) try {
  dim difference = a - b;
  if (difference.is_static()) return std::nullopt;
  difference = primitive(difference);
  auto terms = difference.terms();
  std::optional<std::pair<std::string, dim>> best;
  for (const auto& [atoms, c] : terms) {
    if (atoms.size() != 1 || atoms[0]->is != dim_atom::kind::symbol || (c != 1 && c != -1)) continue;
    const std::string& symbol = atoms[0]->text;
    // Counts and elements of inputs depend on data: they cannot be replaced, only checked.
    if (symbol.starts_with(count_prefix) || symbol.starts_with(value_prefix) || occurs_elsewhere(terms, atoms, symbol))
      continue;
    dim solved = dim(-c) * (difference - dim(c) * dim::from(atoms[0]));
    auto least = facts.lower(dim::from(atoms[0])), most = facts.upper(dim::from(atoms[0]));
    if (auto high = facts.upper(solved); high && least && *high < *least) continue;
    if (auto low = facts.lower(solved); low && most && *low > *most) continue;
    // Prefer "total = past + seq" over "past = total - seq".
    bool is_sum = std::ranges::all_of(solved.terms(), [](const auto& term) { return term.second > 0; });
    if (!best || is_sum) best.emplace(symbol, solved);
    if (is_sum) break;
  }
  return best;
} catch (const error&) {  // the numbers overflow
  return std::nullopt;
}

bool equal_only_at_one(const dim& a, const dim& b, const dim_facts& facts) try {
  const auto symbols = (a + b).symbols();
  auto is_flag = [&](const std::string& symbol) {
    return facts.lower(dim::symbol(symbol)) == 0 && facts.upper(dim::symbol(symbol)) == 1;
  };
  bool one = false;
  for (std::int64_t size :
       {2, 3, 5, 8, 12, 16, 31, 64, 100, 128, 200, 224, 384, 500, 512, 640, 1000, 1024, 1500, 4096}) {
    dim_bindings sizes;
    for (const std::string& symbol : symbols) sizes[symbol] = is_flag(symbol) ? size % 2 : size;
    const std::int64_t x = a.substitute(sizes).value(), y = b.substitute(sizes).value();
    if (x == y && x > 1) return false;  // there may be no elements for small sizes
    one |= (x == 1) != (y == 1);
  }
  return one;
} catch (const error&) {  // a dim has no value for one of the sizes
  return false;
}

void take_as_equal(dim_knowledge& known, const dims_differ& wanted, const std::string& who) {
  auto is_count = [](const dim& d) {
    return std::ranges::any_of(d.symbols(), [](const std::string& s) { return s.starts_with(count_prefix); });
  };
  auto order = known.facts.order(wanted.a(), wanted.b());
  const bool everywhere = known.when == dim(1);
  if ((everywhere && make_equal(wanted.a(), wanted.b(), known.facts)) || (order && *order != 0) ||
      is_count(wanted.a()) || is_count(wanted.b()))
    throw wanted;
  const dim a = known.when * wanted.a(), b = known.when * wanted.b();
  auto same = [&](const dim_guard& g) { return (g.a == a && g.b == b) || (g.a == b && g.b == a); };
  if (std::ranges::none_of(known.guards, same)) known.guards.push_back({a, b, who + ": " + wanted.what()});
}

const dim& representative(const dim& a, const dim& b) {
  std::string left = a.str(), right = b.str();
  return std::pair(left.size(), left) <= std::pair(right.size(), right) ? a : b;
}

}  // namespace kiln::onnx_import
