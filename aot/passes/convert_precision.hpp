// Makes the f32 of a program another floating type (f16, bf16): `--fp16`, `--bf16`. Inputs and outputs of the model
// stay as they are, behind conversions; constants are converted, finite ones staying finite; arithmetic and statistics
// inside kernels remain f32 by the rules of the operations. What only leads to integers (sizes, positions) keeps its
// type.
#pragma once

#include "ir/program.hpp"

namespace kiln {

struct convert_precision {
  element_type type = element_type::f16;

  std::string_view name() const { return "convert_precision"; }
  bool apply(program& p) const;
};

}  // namespace kiln
