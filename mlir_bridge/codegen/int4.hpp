// Loads, converts and stores elements of 4 or 2 bits, which are packed into bytes from the low bits up. A computed
// element is an integer of its width, its code. A value of several 4-bit lanes that are contiguous in memory is the
// bitcast of its bytes; convert_packed converts whole words of it. A kernel first writes one code per byte into scratch
// memory; a last stage packs them (kernel_emitter::pack_outputs). Internal to mlir_bridge.
#pragma once

#include "mlir_bridge/codegen/code_builder.hpp"

namespace kiln::codegen {

inline bool is_packed(element_type type) { return storage_bits(type) < 8; }
// Throws error{unsupported}: a tensor of this type would have to be written where only whole bytes can be.
[[noreturn]] void refuse_packed(const code_builder& code, element_type type);

// Loads `lanes` consecutive elements, the first at element `offset`, which is a multiple of `multiple`. Uses a single
// load if 4-bit elements begin at a byte boundary, otherwise one load per lane.
Value load_packed(code_builder& code, Value pointer, Value offset, element_type type, std::int64_t lanes,
                  std::int64_t multiple);

// Stores byte `index` of a packed tensor. `codes` holds the codes of its `elements` elements, one per u8; the bits
// after the last element are 0.
void store_packed(code_builder& code, Value codes, Value elements, element_type type, Value bytes, Value index);

// Converts packed integers exactly to the compute type of `to`.
Value convert_packed(code_builder& code, Value v, element_type from, element_type to);

}  // namespace kiln::codegen
