// Floats of 4 and 8 bits in kernels: converts their codes to f32 and back with integer arithmetic, which gives the same
// bits on every target. Throws error{internal} for other types. Internal to mlir_bridge.
#pragma once

#include "mlir_bridge/codegen/code_builder.hpp"

namespace kiln::codegen {

// Returns true if kernels hold elements of the type as 8-bit codes and compute with them in f32.
inline bool is_small_float(element_type type) { return is_float(type) && storage_bits(type) == 8; }

// `codes` are integers with at least as many bits as the type.
Value small_float_to_f32(code_builder& code, Value codes, element_type type);
// Rounds as the conversions of ir/element_type.hpp do. Returns 8-bit integers.
Value f32_to_small_float(code_builder& code, Value numbers, element_type type);

}  // namespace kiln::codegen
