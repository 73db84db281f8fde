// Recognizes masks of attention scores: an addition, or a selection between the scores and a number. Used by
// fuse_attention.
#pragma once

#include <optional>
#include <vector>

#include "aot/passes/rewrite.hpp"

namespace kiln {

enum class mask_kind : std::uint8_t {
  added,  // floating, added to the scores
  keeps,  // boolean, true where the score is kept
  hides,  // boolean, true where the score is hidden
};

struct score_mask {
  value what;  // without its broadcasts
  mask_kind kind;
  double fill;  // replaces a hidden score; unused if the mask is added
};

struct masked_scores {
  value scores;
  score_mask mask;
};

// Returns all ways to read v as masked scores. `scores` has the dims of v.
std::vector<masked_scores> masked_at(value v);

struct joined_mask {
  bool causal = false;
  value mask;  // null if nothing else is hidden
};

// Returns an added mask that is 0 or a number, chosen by a condition and then moved, as a mask with that condition. Any
// other one is returned as it is.
score_mask as_selection(rewriter& write, const score_mask& m);

// Joins the masks of an attention whose scores have these dims. Returns none if the masks differ in kind, or if a fill
// is not low enough to behave like a mask: a row that is hidden completely must give the same result as in the model.
// `fill_type` is that of masks with a finite fill.
std::optional<joined_mask> join_masks(rewriter& write, const std::vector<score_mask>& masks,
                                      const std::vector<dim>& scores, element_type fill_type = element_type::f32);

}  // namespace kiln
