// Computes how a reshape regroups its dims: the finest list of pairs (input axes, output axes) with equal products, in
// order. Dims of 1 belong to no group. [2, 3, 1, 20] → [6, 4, 5] gives {0,1}→{0} and {3}→{1,2}.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/dim.hpp"

namespace kiln {

struct reshape_group {
  std::vector<std::size_t> from;
  std::vector<std::size_t> to;
};

// Returns none for tensors without elements. Symbolic dims that cannot be compared form one group with all dims that
// follow.
std::optional<std::vector<reshape_group>> reshape_groups(const std::vector<dim>& from, const std::vector<dim>& to);

// True if a reshape only adds or removes dims of 1.
bool only_unit_dims_change(const std::vector<dim>& from, const std::vector<dim>& to);

}  // namespace kiln
