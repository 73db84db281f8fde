// The functions of this process that a native host kernel may call: memory operations, libm, and the half-precision
// conversions that LLVM emits calls to. Nothing else is resolved, so a kernel from a file cannot link against the rest
// of the process.
#pragma once

#include <string_view>

namespace kiln {

// Returns null for a name that is not on the list. Any thread.
const void* find_host_symbol(std::string_view name);

}  // namespace kiln
