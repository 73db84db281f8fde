// How a reshape regroups axes whose sizes may be open.
#pragma once

#include <cstddef>
#include <vector>

#include "ir/dim.hpp"

namespace kiln::codegen {

// Axes [from_begin, from_end) of one shape become axes [to_begin, to_end) of the other.
struct regrouped_axes {
  std::size_t from_begin = 0, from_end = 0, to_begin = 0, to_end = 0;
};

// Returns the smallest groups of axes with equal products of sizes, in order. They cover all axes. If products of open
// sizes cannot be compared, the last group has all axes that remain.
std::vector<regrouped_axes> regroup_axes(const std::vector<dim>& from, const std::vector<dim>& to);

}  // namespace kiln::codegen
