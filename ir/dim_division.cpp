// Exact division of polynomials by long division. Leading terms are chosen by a monomial order that is compatible with
// multiplication.
#include <algorithm>

#include "ir/dim.hpp"
#include "ir/error.hpp"

namespace kiln {
namespace {

constexpr int most_steps = 1024;

// Lexicographic: at the first atom whose powers differ, the higher power is greater.
bool less(const dim_product& a, const dim_product& b) {
  dim_atom_order before;
  std::size_t i = 0;
  while (i < a.size() && i < b.size() && !before(a[i], b[i]) && !before(b[i], a[i])) ++i;
  if (i == a.size() || i == b.size()) return i == a.size() && i != b.size();
  return before(b[i], a[i]);
}

std::pair<dim_product, std::int64_t> leading(const dim_terms& terms) {
  auto found =
      std::max_element(terms.begin(), terms.end(), [](const auto& x, const auto& y) { return less(x.first, y.first); });
  return {found->first, found->second};
}

}  // namespace

bool divides_exactly(const dim& a, const dim& b, dim& quotient) {
  if (b == dim(0)) return false;
  auto [divisor_atoms, divisor] = leading(b.terms());
  dim rest = a, total = 0;
  for (int step = 0; !(rest == dim(0)); ++step) {
    auto [atoms, coefficient] = leading(rest.terms());
    if (divisor == -1 && coefficient == INT64_MIN)
      throw error(error_kind::invalid_model, "a tensor dimension overflows 64 bits");
    if (step == most_steps || coefficient % divisor != 0) return false;
    if (!std::includes(atoms.begin(), atoms.end(), divisor_atoms.begin(), divisor_atoms.end(), dim_atom_order{}))
      return false;
    dim_product remaining;
    std::set_difference(atoms.begin(), atoms.end(), divisor_atoms.begin(), divisor_atoms.end(),
                        std::back_inserter(remaining), dim_atom_order{});
    dim part = dim::from(dim_terms{{remaining, coefficient / divisor}});
    total = total + part;
    rest = rest - part * b;
  }
  quotient = total;
  return true;
}

}  // namespace kiln
