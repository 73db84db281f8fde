// Which instructions only give another shape to the same bytes: reshapes, and transposes or broadcasts that move or add
// dims of size 1. They cost nothing at run time: their result shares the storage of their input. Pure; any thread.
#pragma once

#include <optional>

#include "ir/instruction.hpp"

namespace kiln {

// The value whose bytes are the (only) output of `i`, or nothing when `i` moves or computes bytes.
std::optional<value> alias_source(const instruction& i);

// Follows aliases back to the value that owns the bytes.
value alias_root(value v);

}  // namespace kiln
