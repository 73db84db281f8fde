#include "ir/dim_facts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ir/error.hpp"

namespace kiln {
namespace {

// Recursion limit. More deeply nested quotients, minima and maxima are treated as unknown.
constexpr int deepest = 6;

using bound = std::optional<std::int64_t>;

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
std::int64_t ceil_quotient(std::int64_t a, std::int64_t b) { return floor_quotient(a, b) + (a % b != 0); }

bound larger(bound a, bound b) { return a && b ? std::max(*a, *b) : a ? a : b; }

bool is_extreme(const dim_atom& atom) {
  return atom.is == dim_atom::kind::minimum || atom.is == dim_atom::kind::maximum;
}

// The rounding of a bound to f32 is the bound of the rounded sizes.
float as_real(bound b, float unknown) { return b ? static_cast<float>(*b) : unknown; }

bound rounded_down(float x) {
  constexpr float most = 0x1p62f;
  return std::abs(x) < most ? bound(static_cast<std::int64_t>(std::floor(x))) : std::nullopt;
}

}  // namespace

std::optional<real_range> dim_facts::real_bounds(const dim_atom& atom, int depth) const {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<real_range> ranges;
  for (const dim& d : atom.operands)
    ranges.push_back({as_real(lower(d, depth + 1), -infinity), as_real(upper(d, depth + 1), infinity)});
  return range_of(atom.steps, ranges);
}

dim_facts::bound dim_facts::atom_lower(const dim_atom& atom, int depth) const {
  if (atom.is == dim_atom::kind::symbol) {
    auto found = ranges_.find(atom.text);
    return found == ranges_.end() ? 1 : found->second.min;
  }
  if (depth >= deepest) return std::nullopt;
  if (atom.is == dim_atom::kind::real) {
    const auto range = real_bounds(atom, depth);
    return range ? rounded_down(range->low) : std::nullopt;
  }
  if (atom.is == dim_atom::kind::quotient) {
    bound a = lower(atom.operands[0], depth + 1), b = lower(atom.operands[1], depth + 1);
    if (!a || !b || *b < 0) return std::nullopt;
    b = std::max<std::int64_t>(*b, 1);  // a quotient by 0 has no value
    if (*a < 0) return floor_quotient(*a, *b);
    bound most = upper(atom.operands[1], depth + 1);
    return most ? floor_quotient(*a, *most) : 0;
  }
  bool is_min = atom.is == dim_atom::kind::minimum;
  bound result = lower(atom.operands[0], depth + 1);
  for (std::size_t i = 1; i < atom.operands.size(); ++i) {
    bound next = lower(atom.operands[i], depth + 1);
    if (is_min) result = result && next ? bound(std::min(*result, *next)) : std::nullopt;
    else result = larger(result, next);
  }
  return result;
}

dim_facts::bound dim_facts::atom_upper(const dim_atom& atom, int depth) const {
  if (atom.is == dim_atom::kind::symbol) {
    auto found = ranges_.find(atom.text);
    return found == ranges_.end() || found->second.max == INT64_MAX ? std::nullopt : bound(found->second.max);
  }
  if (depth >= deepest) return std::nullopt;
  if (atom.is == dim_atom::kind::real) {
    const auto range = real_bounds(atom, depth);
    return range ? rounded_down(range->high) : std::nullopt;
  }
  if (atom.is == dim_atom::kind::quotient) {
    bound a = upper(atom.operands[0], depth + 1), b = lower(atom.operands[1], depth + 1);
    if (!a || !b || *b < 0) return std::nullopt;
    b = std::max<std::int64_t>(*b, 1);  // a quotient by 0 has no value
    if (*a >= 0) return floor_quotient(*a, *b);
    bound most = upper(atom.operands[1], depth + 1);
    return most ? floor_quotient(*a, *most) : -1;
  }
  bool is_max = atom.is == dim_atom::kind::maximum;
  bound result = upper(atom.operands[0], depth + 1);
  for (std::size_t i = 1; i < atom.operands.size(); ++i) {
    bound next = upper(atom.operands[i], depth + 1);
    if (is_max) result = result && next ? bound(std::max(*result, *next)) : std::nullopt;
    else result = result && next ? bound(std::min(*result, *next)) : result ? result : next;
  }
  return result;
}

// Substitutes lower(t) + t' with t' >= 0 for every atom t. Then a term with a positive coefficient is at least 0. A
// term with a negative coefficient is bounded by the upper bounds of its atoms.
dim_facts::bound dim_facts::opaque_lower(const dim_terms& terms, int depth) const {
  // The upper bound of t' is computed when a term needs it, because each level of a nested expression would otherwise
  // ask for twice as many bounds.
  struct offset {
    const dim_atom* atom;
    std::int64_t low;
  };
  std::map<std::string, dim> moved;       // text of t to lower(t) + t'
  std::map<std::string, offset> offsets;  // by the name of t'
  std::map<std::string, bound> widths;    // upper bounds of t' that were computed
  dim total = 0;
  for (const auto& [atoms, coefficient] : terms) {
    dim product = coefficient;
    for (const auto& atom : atoms) {
      if (!moved.contains(atom->text)) {
        bound low = atom_lower(*atom, depth);
        if (!low) return std::nullopt;
        std::string name = "t" + std::to_string(moved.size());
        offsets[name] = {atom.get(), *low};
        moved[atom->text] = dim(*low) + dim::symbol(name);
      }
      product = product * moved.at(atom->text);
    }
    total = total + product;
  }
  dim low = 0;
  for (const auto& [atoms, coefficient] : total.terms()) {
    if (!atoms.empty() && coefficient > 0) continue;
    dim most = coefficient;
    for (const auto& atom : atoms) {
      auto [width, fresh] = widths.try_emplace(atom->text);
      if (fresh) {
        const offset& moves = offsets.at(atom->text);
        if (bound high = atom_upper(*moves.atom, depth)) width->second = (dim(*high) - dim(moves.low)).value();
      }
      if (!width->second) return std::nullopt;
      most = most * dim(*width->second);
    }
    low = low + most;
  }
  return low.value();
}

// Uses the relation between an atom and its operands, or between a symbol and the expression that limits it. Chooses
// the first atom that is a term by itself and occurs nowhere else; of these, first one whose cases are told apart, so
// that the choice for another atom may differ from case to case: min(c, x) + y - min(c, x + y) is at least 0. Symbols
// come last, because the operands may name them.
dim_facts::bound dim_facts::relaxed_lower(const dim& d, int depth) const {
  auto terms = d.terms();
  const auto uses_of = [&](const dim_atom& atom) {
    return std::count_if(terms.begin(), terms.end(), [&](const auto& t) {
      return std::any_of(t.first.begin(), t.first.end(), [&](const auto& a) { return a->text == atom.text; });
    });
  };
  for (bool tells_apart : {true, false})
    for (const auto& [atoms, coefficient] : terms) {
      if (atoms.size() != 1 || atoms[0]->is == dim_atom::kind::symbol || atoms[0]->is == dim_atom::kind::real) continue;
      const dim_atom& atom = *atoms[0];
      // -min(a, b) is at least -a and at least -b, so the larger bound is valid. min(a, b) equals a or b, so only the
      // smaller bound is valid.
      const bool any_holds = (atom.is == dim_atom::kind::minimum) == (coefficient < 0);
      if ((is_extreme(atom) && !any_holds) != tells_apart) continue;
      if (uses_of(atom) != 1) continue;
      dim rest = d - dim(coefficient) * dim::from(atoms[0]), factor = coefficient;
      if (is_extreme(atom)) {
        bound result;
        for (std::size_t i = 0; i < atom.operands.size(); ++i) {
          bound next = lower(rest + factor * atom.operands[i], depth + 1);
          result = i == 0           ? next
                   : any_holds      ? larger(result, next)
                   : result && next ? bound(std::min(*result, *next))
                                    : std::nullopt;
        }
        return result;
      }
      // (a - n + 1) / n <= floor(a / n) <= a / n.
      const dim &a = atom.operands[0], n = atom.operands[1];
      if (!n.is_static() || n.value() <= 0) continue;
      bound scaled = lower(n * rest + factor * (coefficient < 0 ? a : a - n + dim(1)), depth + 1);
      return scaled ? bound(ceil_quotient(*scaled, n.value())) : std::nullopt;
    }
  for (const auto& [atoms, coefficient] : terms) {
    if (atoms.size() != 1 || coefficient > 0 || uses_of(*atoms[0]) != 1) continue;
    if (const auto most = mosts_.find(atoms[0]->text); most != mosts_.end())
      return lower(d + dim(coefficient) * (most->second - dim::from(atoms[0])), depth + 1);
  }
  return std::nullopt;
}

dim_facts::bound dim_facts::lower(const dim& d, int depth) const {
  if (d.is_static()) return d.value();
  if (depth >= deepest) return std::nullopt;
  return larger(opaque_lower(d.terms(), depth), relaxed_lower(d, depth));
}

dim_facts::bound dim_facts::lower(const dim& d) const try {
  return lower(d, 0);
} catch (const error&) {  // overflow, or an expression beyond the limits
  return std::nullopt;
}

dim_facts::bound dim_facts::upper(const dim& d) const try { return upper(d, 0); } catch (const error&) {
  return std::nullopt;
}

bool dim_facts::at_least(const dim& a, const dim& b) const {
  bound least = lower(a - b);
  return least && *least >= 0;
}

std::optional<int> dim_facts::order(const dim& a, const dim& b) const {
  dim difference = a - b;
  if (difference == dim(0)) return 0;
  if (bound least = lower(difference); least && *least > 0) return 1;
  if (bound most = upper(difference); most && *most < 0) return -1;
  bound least = lower(difference), most = upper(difference);
  if (least == 0 && most == 0) return 0;
  return std::nullopt;
}

dim dim_facts::min(const dim& a, const dim& b) const {
  return at_least(a, b) ? b : at_least(b, a) ? a : dim::min(a, b);
}

dim dim_facts::max(const dim& a, const dim& b) const {
  return at_least(a, b) ? a : at_least(b, a) ? b : dim::max(a, b);
}

}  // namespace kiln
