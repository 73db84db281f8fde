// Floats of 4 and 8 bits in kernels: their codes are computed into f32 and back by integer arithmetic, which is the
// same on every target. Throws error{internal} for other types. Internal to mlir_bridge.
#pragma once

#include "mlir_bridge/codegen/code_builder.hpp"

namespace kiln::codegen {

// Whether a kernel holds elements of the type as codes of 8 bits and computes with them in f32.
inline bool is_small_float(element_type type) { return is_float(type) && storage_bits(type) == 8; }

// `codes` has integers of at least as many bits as the type.
Value small_float_to_f32(code_builder& code, Value codes, element_type type);
// Rounds like the conversions of ir/element_type.hpp. The result has integers of 8 bits.
Value f32_to_small_float(code_builder& code, Value numbers, element_type type);

}  // namespace kiln::codegen
