// A topological order of units, kept while units are merged: instructions, and groups of them that become one kernel.
// With it a search for a cycle visits only what lies between the two units that are to be merged, not the rest of the
// module. The method is that of Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs"
// (2006), with merging in place of new edges.
//
// Units are numbers. Some may be transparent: no kernel, but copied into every kernel that reads them; they have no
// place of their own.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace kiln {

class kernel_order {
 public:
  struct graph {
    // Calls `each` for the units that read `unit` (forward) or that it reads, perhaps several times for one, perhaps
    // for itself.
    std::function<void(std::size_t unit, bool forward, const std::function<void(std::size_t)>& each)> neighbours;
    std::function<bool(std::size_t unit)> transparent;
  };

  // Units 0 to units - 1, which are in topological order. `g` is asked during calls and may change between them.
  kernel_order(std::size_t units, graph g);

  // Whether a path between the two units goes through a third one. Such units cannot be fused: the kernel would depend
  // on its own result.
  bool parted(std::size_t a, std::size_t b);
  // Tells that `gone` becomes part of `kept`, which are not parted. Call it before the graph changes.
  void merge(std::size_t kept, std::size_t gone);

 private:
  bool collect(std::size_t start, std::size_t end, bool forward, std::vector<std::size_t>& between);

  graph graph_;
  std::vector<std::size_t> place_;  // of each unit in the order; of those that are gone or transparent it means nothing
  std::vector<std::size_t> seen_;
  std::size_t stamp_ = 0;
};

}  // namespace kiln
