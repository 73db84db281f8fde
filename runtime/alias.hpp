// Finds instructions that only change the shape of a value and not its bytes: reshapes, and transposes or broadcasts
// that move or add dims of size 1. They cost nothing at run time, because the result shares the storage of the input.
// Pure; any thread.
#pragma once

#include <optional>

#include "ir/instruction.hpp"

namespace kiln {

// Returns the value that shares its bytes with the only output of `i`, or nullopt if `i` moves or computes bytes.
std::optional<value> alias_source(const instruction& i);

// Follows aliases back to the value that owns the bytes.
value alias_root(value v);

}  // namespace kiln
