// Detects instructions that have nothing to compute because every output has a dimension of 0.
#pragma once

#include <algorithm>

#include "ir/instruction.hpp"

namespace kiln {

// True if the instruction has outputs and all of them are empty tensors. Such an instruction needs no kernel and is
// never launched.
inline bool gives_no_elements(const instruction& i) {
  auto empty = [](const shape& s) { return s.is_static() && s.element_count() == 0; };
  return !i.outputs().empty() && std::ranges::all_of(i.outputs(), empty);
}

}  // namespace kiln
