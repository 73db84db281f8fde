#include "ir/dim_atoms.hpp"

namespace kiln {

dim with_operands(const dim_atom& atom, const std::vector<dim>& operands) {
  switch (atom.is) {
    case dim_atom::kind::quotient: return operands.at(0) / operands.at(1);
    case dim_atom::kind::real: return dim::floor_of_real(atom.steps, operands);
    case dim_atom::kind::minimum:
    case dim_atom::kind::maximum: {
      dim result = operands.at(0);
      for (const dim& d : operands)
        result = atom.is == dim_atom::kind::minimum ? dim::min(result, d) : dim::max(result, d);
      return result;
    }
    default: return dim::symbol(atom.text);
  }
}

dim replace_atoms(const dim& d, const std::function<std::optional<dim>(const dim_atom&)>& with) {
  if (d.is_static()) return d;
  dim total = 0;
  for (const auto& [atoms, coefficient] : d.terms()) {
    dim product = coefficient;
    for (const auto& atom : atoms) {
      std::optional<dim> replaced = with(*atom);
      if (!replaced && atom->is == dim_atom::kind::symbol) replaced = dim::from(atom);
      if (!replaced) {
        std::vector<dim> operands;
        for (const dim& operand : atom->operands) operands.push_back(replace_atoms(operand, with));
        replaced = with_operands(*atom, operands);
      }
      product = product * *replaced;
    }
    total = total + product;
  }
  return total;
}

dim dim::replace(const std::map<std::string, dim>& replacements) const {
  return replace_atoms(*this, [&](const dim_atom& atom) -> std::optional<dim> {
    if (atom.is != dim_atom::kind::symbol) return std::nullopt;
    auto found = replacements.find(atom.text);
    return found == replacements.end() ? std::nullopt : std::optional(found->second);
  });
}

}  // namespace kiln
