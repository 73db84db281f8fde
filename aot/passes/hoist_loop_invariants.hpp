// Moves operations out of the bodies of Loops if they depend on constants and on the loop's invariants alone: they give
// the same result in every iteration. The results become invariants of the loop. Values that are only moved or
// broadcast stay inside, because kernels read them for free.
#pragma once

#include "aot/passes/pass.hpp"

namespace kiln {

class rewrite_log;

struct hoist_loop_invariants {
  rewrite_log* log = nullptr;

  std::string_view name() const { return "hoist_loop_invariants"; }
  bool apply(program& p) const;
};

}  // namespace kiln
