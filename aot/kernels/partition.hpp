// Divides a module into kernels: which instructions each one computes and gives out. Instructions that are in no
// cluster are structure, reshapes that stay (an alias at run time), or inlinable and copied into every cluster that
// reads them.
//
// First every anchor takes the elementwise operations after it for as long as no kernel would need another's result to
// make one of that other's inputs. Then, from the outputs backwards, each remaining operation is either copied into all
// of its readers or made an output of a cluster, whichever costs less; an operation with equal dims at the same indices
// joins its reader's cluster as another output.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/module.hpp"

namespace kiln {

struct cluster {
  std::vector<instruction*> members;  // in the module's order; the anchor first, if there is one
  std::vector<value> outputs;         // in the module's order
};

struct partition {
  std::vector<cluster> clusters;                              // in the order of their last members
  std::unordered_map<const instruction*, std::size_t> owner;  // members only
  std::unordered_set<const instruction*> in_memory;  // reshapes that stay and constants to be made; not in a cluster
  std::vector<instruction*> constants;               // of these, what to replace by a constant of its own
};

struct partition_options {
  std::size_t most_operations = 96;  // of one kernel
  std::size_t most_outputs = 8;
  std::unordered_set<const instruction*> in_memory = {};  // results that no kernel may compute for itself
};

// The module must be topologically sorted and hold no dead instructions.
partition make_partition(module& m, const partition_options& options = {});

}  // namespace kiln
