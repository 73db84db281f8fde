// A topological order of units that is maintained while units are merged. A unit is an instruction, or a group of
// instructions that becomes one kernel. The order limits the search for a cycle to the units between the two that are
// to be merged. The algorithm is from Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic
// graphs" (2006), with merges instead of new edges.
// Units are identified by number. A unit may be transparent: it is not a kernel but is copied into every kernel that
// reads it. Transparent units have no position in the order.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace kiln {

class kernel_order {
 public:
  struct graph {
    // Calls `each` for the units that read `unit` (forward) or that `unit` reads (backward). It may report a unit
    // several times and may report `unit` itself.
    std::function<void(std::size_t unit, bool forward, const std::function<void(std::size_t)>& each)> neighbours;
    std::function<bool(std::size_t unit)> transparent;
  };

  // Starts with units 0 to units - 1, which must be in topological order. The graph is queried during calls and may
  // change between them.
  kernel_order(std::size_t units, graph g);

  // Returns whether a path between the two units goes through a third unit. Such units cannot be fused, because the
  // kernel would depend on its own result.
  bool parted(std::size_t a, std::size_t b);
  // Records that `gone` becomes part of `kept`. The two must not be parted(). Call this before the graph changes.
  void merge(std::size_t kept, std::size_t gone);

 private:
  bool collect(std::size_t start, std::size_t end, bool forward, std::vector<std::size_t>& between);

  graph graph_;
  // Position of each unit in the order; meaningless for merged and transparent units.
  std::vector<std::size_t> place_;
  std::vector<std::size_t> seen_;
  std::size_t stamp_ = 0;
};

}  // namespace kiln
