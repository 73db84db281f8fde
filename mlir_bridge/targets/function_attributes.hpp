// Attributes of functions through which generators tell a back end how to optimize.
#pragma once

namespace kiln {

// The function's loops are written as they should run: no CPU pass unrolls them.
inline constexpr const char* written_loops = "kiln-written-loops";

}  // namespace kiln
