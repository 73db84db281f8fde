// AMD's generic targets: code for all processors of a family (code object version 6). Pure; any thread.
#pragma once

#include <string_view>

namespace kiln::gpu {

// The generic target whose code runs on `architecture` ("gfx1151", "gfx1151:xnack-"), such as "gfx11-generic". Empty if
// LLVM has none for it.
std::string_view generic_target(std::string_view architecture);

}  // namespace kiln::gpu
