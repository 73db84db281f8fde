// Loads and converts elements of 4 or 2 bits, which are packed into bytes from the low bits up. A value of several
// 4-bit lanes that are contiguous in memory is the bitcast of its bytes; convert_packed converts whole words of it.
// Kernels cannot store such tensors: storing throws error{unsupported}. Internal to mlir_bridge.
#pragma once

#include "mlir_bridge/codegen/code_builder.hpp"

namespace kiln::codegen {

inline bool is_packed(element_type type) { return storage_bits(type) < 8; }
[[noreturn]] void refuse_packed(const code_builder& code, element_type type);

// Loads `lanes` consecutive elements, the first at element `offset`, which is a multiple of `multiple`. Uses a single
// load if 4-bit elements begin at a byte boundary, otherwise one load per lane.
Value load_packed(code_builder& code, Value pointer, Value offset, element_type type, std::int64_t lanes,
                  std::int64_t multiple);

// Converts packed integers exactly to the compute type of `to`.
Value convert_packed(code_builder& code, Value v, element_type from, element_type to);

}  // namespace kiln::codegen
