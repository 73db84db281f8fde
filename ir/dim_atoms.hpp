// Rewrites of dims by their atoms, for code that must know what an expression is made of.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/dim.hpp"

namespace kiln {

// The atom's value, or a simpler form of it, for other operands.
dim with_operands(const dim_atom& atom, const std::vector<dim>& operands);

// Replaces every atom for which `with` returns a dim, outermost first. The operands of replaced atoms are not visited.
dim replace_atoms(const dim& d, const std::function<std::optional<dim>(const dim_atom&)>& with);

}  // namespace kiln
