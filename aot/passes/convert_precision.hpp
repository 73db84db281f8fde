// Converts the f32 of a program to another floating type (f16, bf16): `--fp16`, `--bf16`. Inputs and outputs of the
// model keep their types behind conversions. Constants are converted so that finite values stay finite. Inside kernels,
// accumulation and statistics remain f32 by the rules of the operations. Computations that only produce integers
// (sizes, positions) keep their type.
#pragma once

#include "ir/program.hpp"

namespace kiln {

struct convert_precision {
  element_type type = element_type::f16;

  std::string_view name() const { return "convert_precision"; }
  bool apply(program& p) const;
};

}  // namespace kiln
