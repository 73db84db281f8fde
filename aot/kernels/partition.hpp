// Divides a module into kernels: decides which instructions each kernel computes and which values it outputs. An
// instruction outside all fusions is structure, a reshape that stays (an alias at run time), or inlinable and copied
// into every fusion that reads it.
// First, each anchor absorbs the elementwise operations that follow it, as long as no dependency cycle between kernels
// arises. Then the remaining operations are visited from the outputs backwards. Each is either copied into all of its
// readers or becomes an output of a fusion, whichever is cheaper. An operation with the same dims that is read at the
// same indices joins its reader's fusion as another output.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/module.hpp"

namespace kiln {

struct fusion {
  std::vector<instruction*> members;  // in the module's order; the anchor first, if there is one
  std::vector<value> outputs;         // in the module's order
};

struct partition {
  std::vector<fusion> fusions;                                // in the order of their last members
  std::unordered_map<const instruction*, std::size_t> owner;  // members only
  // Reshapes that stay, and constants to be created; none is in a fusion.
  std::unordered_set<const instruction*> in_memory;
  // The instructions of `in_memory` to be replaced by a constant.
  std::vector<instruction*> constants;
};

struct partition_options {
  std::size_t most_operations = 96;  // per kernel
  std::size_t most_outputs = 8;
  // Instructions whose results must be in memory: no kernel may recompute them.
  std::unordered_set<const instruction*> in_memory = {};
};

// The module must be topologically sorted and free of dead instructions.
partition make_partition(module& m, const partition_options& options = {});

}  // namespace kiln
