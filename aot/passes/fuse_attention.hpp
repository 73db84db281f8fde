// Finds attention that a model writes out as softmax(scale · Q Kᵀ + mask) V and replaces it by one operation:
//  * The scale is on Q, on K or on the scores, as a factor or a divisor.
//  * The mask is added or selected (where), and broadcasts to the scores. Several masks of one kind are joined. A
//    constant mask that hides exactly the later keys becomes `causal`.
//  * Heads may share keys: the rows of a group are adjacent in the products (simplify_contractions creates that form).
//  * Weights that are NaN may be replaced by 0, as torch.onnx writes it: rows that see no key are then 0.
//  * Conversions, and reshapes that keep the rows, may be in between. The whole may be written transposed: V (Pᵀ).
// The pattern is left alone if the scores or the weights have other uses, if the softmax runs over another axis than
// the keys, if a mask does not broadcast, or if a selected number is too small a penalty to count as hidden. Transposes
// of heads become layouts later (simplify_attention).
#pragma once

#include "ir/module.hpp"

namespace kiln {

class rewrite_log;

struct fuse_attention {
  rewrite_log* log = nullptr;

  std::string_view name() const { return "fuse_attention"; }
  bool apply(module& m) const;
};

}  // namespace kiln
