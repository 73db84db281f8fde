// Rewrites around attention: a transpose that swaps heads and positions becomes a layout of the operand or of the
// result, and a mask loses its broadcasts.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/module.hpp"

namespace kiln {

class rewrite_log;

// The permutation that swaps heads and positions. It is its own inverse.
std::vector<std::int64_t> head_swap(std::size_t rank);

struct simplify_attention {
  rewrite_log* log = nullptr;

  std::string_view name() const { return "simplify_attention"; }
  bool apply(module& m) const;
};

}  // namespace kiln
