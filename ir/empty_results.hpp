// Instructions that have nothing to compute, because a dimension of each of their outputs is 0.
#pragma once

#include <algorithm>

#include "ir/instruction.hpp"

namespace kiln {

// Whether all outputs are empty tensors: no kernel is made for the instruction, and none is launched. An instruction
// without outputs is not one.
inline bool gives_no_elements(const instruction& i) {
  auto empty = [](const shape& s) { return s.is_static() && s.element_count() == 0; };
  return !i.outputs().empty() && std::ranges::all_of(i.outputs(), empty);
}

}  // namespace kiln
