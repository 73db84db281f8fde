// Whether a program needs a compiler.
#pragma once

#include <algorithm>

#include "ir/program.hpp"

namespace kiln {

// True if no code object is portable. The dims may be open, where the kernels serve all sizes.
inline bool has_native_kernels_only(const program& p) {
  return std::ranges::all_of(p.modules(), [](const module& m) {
    return std::ranges::none_of(m.instructions(), [](const instruction& i) {
      const auto* code = i.op().get_if<code_object>();
      return code && code->format != code_format::native;
    });
  });
}

}  // namespace kiln
