// Masks of attention scores as models write them: an addition, or a selection between the scores and a number. Used by
// fuse_attention.
#pragma once

#include <optional>
#include <vector>

#include "aot/passes/rewrite.hpp"

namespace kiln {

enum class mask_kind : std::uint8_t {
  added,  // floating, added to the scores
  keeps,  // boolean, true where the score stays
  hides,  // boolean, true where the score is taken away
};

struct score_mask {
  value what;  // behind its broadcasts
  mask_kind kind;
  double fill;  // what takes a hidden score's place; unused where added
};

struct masked_scores {
  value scores;
  score_mask mask;
};

// The ways to read v as masked scores; `scores` has the dims of v.
std::vector<masked_scores> masked_at(value v);

struct joined_mask {
  bool causal = false;
  value mask;  // null where nothing else is hidden
};

// One mask for an attention whose scores have these dims. None where the masks differ in kind, or where a fill is not
// low enough to give the same numbers as a mask: a row that is hidden as a whole must come out as in the model.
std::optional<joined_mask> join_masks(rewriter& write, const std::vector<score_mask>& masks,
                                      const std::vector<dim>& scores);

}  // namespace kiln
