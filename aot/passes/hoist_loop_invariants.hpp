// Loop-invariant code motion: moves operations that depend only on constants and loop invariants out of the bodies of
// Loops. Their results become invariants of the loop. Values that are only moved or broadcast stay inside, because
// kernels read them at no cost.
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
