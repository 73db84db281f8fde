// The functions of this process that a native host kernel may call: memory moves, libm, and the half-precision
// conversions that LLVM emits calls for. Everything else is refused, so that a kernel from a file cannot reach the rest
// of the process.
#pragma once

#include <string_view>

namespace kiln {

// Null for a name that is not on the list. Any thread.
const void* find_host_symbol(std::string_view name);

}  // namespace kiln
