#include "ir/dim_table.hpp"

#include <algorithm>

namespace kiln {
namespace {

// floor(a / b), as dim's operator.
std::optional<std::int64_t> floor_quotient(std::int64_t a, std::int64_t b) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return std::nullopt;
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

}  // namespace

std::uint32_t dim_table::add_node(const dim& d) {
  const auto [found, is_new] = known_sums_.try_emplace(d.str());
  if (!is_new) return found->second;
  std::vector<term> terms;
  std::vector<std::uint32_t> factors;
  for (const auto& [product, factor] : d.terms()) {
    terms.push_back({factor, static_cast<std::uint32_t>(factors.size()), static_cast<std::uint32_t>(product.size())});
    for (const auto& atom : product) factors.push_back(add_node(*atom));
  }
  const auto first = static_cast<std::uint32_t>(operands_.size());
  for (term& t : terms) t.first += first;
  nodes_.push_back({kind::sum, static_cast<std::uint32_t>(terms_.size()), static_cast<std::uint32_t>(terms.size())});
  terms_.insert(terms_.end(), terms.begin(), terms.end());
  operands_.insert(operands_.end(), factors.begin(), factors.end());
  return found->second = static_cast<std::uint32_t>(nodes_.size() - 1);
}

std::uint32_t dim_table::add_node(const dim_atom& atom) {
  const auto [found, is_new] = known_atoms_.try_emplace(atom.text);
  if (!is_new) return found->second;
  node made{kind::symbol, static_cast<std::uint32_t>(symbols_.size()), 0};
  if (atom.is == dim_atom::kind::symbol) {
    symbols_.push_back(atom.text);
  } else {
    std::vector<std::uint32_t> operands;
    for (const dim& d : atom.operands) operands.push_back(add_node(d));
    made.is = atom.is == dim_atom::kind::quotient  ? kind::quotient
              : atom.is == dim_atom::kind::minimum ? kind::minimum
              : atom.is == dim_atom::kind::real    ? kind::real
                                                   : kind::maximum;
    if (made.is == kind::real) {
      made.steps = static_cast<std::uint32_t>(steps_.size());
      steps_.push_back(atom.steps);
    }
    made.first = static_cast<std::uint32_t>(operands_.size());
    made.count = static_cast<std::uint32_t>(operands.size());
    operands_.insert(operands_.end(), operands.begin(), operands.end());
  }
  nodes_.push_back(made);
  return found->second = static_cast<std::uint32_t>(nodes_.size() - 1);
}

dim_table::index dim_table::add(const dim& d) {
  const std::uint32_t at = add_node(d);
  const auto [found, is_new] = index_of_node_.try_emplace(at, static_cast<index>(dims_.size()));
  if (is_new) dims_.push_back(at);
  return found->second;
}

std::optional<std::int64_t> dim_table::value_of(const node& n, const std::vector<std::int64_t>& known) const {
  const auto operand = [&](std::uint32_t i) { return known[operands_[n.first + i]]; };
  std::int64_t value = 0;
  switch (n.is) {
    case kind::symbol: break;  // evaluate() knows it
    case kind::quotient: return floor_quotient(operand(0), operand(1));
    case kind::real: {
      std::vector<std::int64_t> sizes;
      for (std::uint32_t i = 0; i < n.count; ++i) sizes.push_back(operand(i));
      return floor_of(steps_[n.steps], sizes);
    }
    case kind::minimum:
    case kind::maximum:
      value = operand(0);
      for (std::uint32_t i = 1; i < n.count; ++i)
        value = n.is == kind::minimum ? std::min(value, operand(i)) : std::max(value, operand(i));
      break;
    case kind::sum:
      for (std::uint32_t t = n.first; t < n.first + n.count; ++t) {
        std::int64_t product = terms_[t].factor;
        for (std::uint32_t i = 0; i < terms_[t].count; ++i)
          if (__builtin_mul_overflow(product, known[operands_[terms_[t].first + i]], &product)) return std::nullopt;
        if (__builtin_add_overflow(value, product, &value)) return std::nullopt;
      }
      break;
  }
  return value;
}

std::optional<std::vector<std::int64_t>> dim_table::evaluate(const dim_bindings& values) const {
  std::vector<std::int64_t> known(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    std::optional<std::int64_t> value;
    if (nodes_[i].is == kind::symbol) {
      if (const auto found = values.find(symbols_[nodes_[i].first]); found != values.end()) value = found->second;
    } else {
      value = value_of(nodes_[i], known);
    }
    if (!value) return std::nullopt;
    known[i] = *value;
  }
  std::vector<std::int64_t> result;
  result.reserve(dims_.size());
  for (std::uint32_t at : dims_) result.push_back(known[at]);
  return result;
}

}  // namespace kiln
