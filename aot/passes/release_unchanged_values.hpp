// Carried values that the body of a Loop passes on as it gets them, such as the weights and limits that tf2onnx
// carries, become invariants of the loop: nothing is copied for them in a trip, and what is computed from them alone
// can move out (hoist_loop_invariants.hpp). Their results are their operands.
#pragma once

#include "aot/passes/pass.hpp"

namespace kiln {

class rewrite_log;

struct release_unchanged_values {
  rewrite_log* log = nullptr;

  std::string_view name() const { return "release_unchanged_values"; }
  bool apply(program& p) const;
};

}  // namespace kiln
