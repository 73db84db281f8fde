// Finds anchors that share a kernel (mlir_bridge/kinds/kind.hpp, anchors): where a product has few rows, as the step of
// a language model has, a launch of its own costs more than what some anchors compute.
//  * Two products of the same operand with weights of the same shape, whose results one operation combines: gate and up
//    of a feed-forward part.
//  * A root-mean-square normalization whose result only such products read.
//  * Two updates of caches of the same shape at the same positions: keys and values.
//  * Such updates by the rows of one id, and the attention of its query to these caches, all of 16 bits.
// A target whose generator cannot compute them together gets a launch for each, as without this.
#pragma once

#include <unordered_set>
#include <vector>

#include "ir/module.hpp"

namespace kiln {

struct joined_anchors {
  struct pair {
    const instruction *inner, *own;
    bool hidden;                                   // only the kernel itself reads what is computed from `inner`
    std::vector<const instruction*> between = {};  // operations through which `own` reads `inner`
  };
  std::vector<pair> pairs;  // in the order in which they are to be joined
  // Conversions from 16 bits that these normalizations compute themselves: their rows lie in memory with 16 bits.
  std::unordered_set<const instruction*> widened;
};

joined_anchors find_joined_anchors(const module& m);

// Returns true for a product of few rows, or of a number that is not known yet, in 16-bit floats.
bool is_product_of_few_rows(const instruction& at);
// Returns the root-mean-square normalization along the last axis that v is, converted or not; null if it is none.
const instruction* root_mean_square_of(value v);

}  // namespace kiln
