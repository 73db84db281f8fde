// Finds attention that a model spells out and makes it one operation: softmax(scale · Q Kᵀ + mask) V, where
//  * the scale is on Q, on K or on the scores, as a factor or a divisor;
//  * the mask is added or selected (where) and narrower than the scores by broadcasting; several of a kind are joined;
//  a constant that hides
//    exactly what comes later becomes `causal`;
//  * heads may share keys: the rows of a group stand together in the products (simplify_contractions makes that form);
//  * conversions and reshapes that keep the rows may stand in between, and the whole may be written transposed: V (Pᵀ).
// Left alone where the scores or the weights are used elsewhere, where the softmax runs over another axis than the
// keys, where a mask does not broadcast, and where a selected number is too small a penalty to mean "not at all". Head
// transposes become layouts later (simplify_attention).
#pragma once

#include "ir/module.hpp"

namespace kiln {

struct fuse_attention {
  std::string_view name() const { return "fuse_attention"; }
  bool apply(module& m) const;
};

}  // namespace kiln
