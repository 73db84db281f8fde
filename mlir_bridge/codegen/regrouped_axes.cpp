#include "mlir_bridge/codegen/regrouped_axes.hpp"

#include "mlir_bridge/codegen/open_sizes.hpp"

namespace kiln::codegen {

std::vector<regrouped_axes> regroup_axes(const std::vector<dim>& from, const std::vector<dim>& to) {
  std::vector<regrouped_axes> groups;
  std::size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    regrouped_axes group{i, i, j, j};
    dim a = 1, b = 1;
    if (i < from.size()) a = from[i++];
    if (j < to.size()) b = to[j++];
    while (a != b) {
      if (is_smaller_part(a, b) && i < from.size()) a = a * from[i++];
      else if (j < to.size()) b = b * to[j++];
      else if (i < from.size()) a = a * from[i++];
      else break;
    }
    group.from_end = i, group.to_end = j;
    groups.push_back(group);
  }
  return groups;
}

}  // namespace kiln::codegen
