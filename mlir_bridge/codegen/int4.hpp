// Elements of 4 or 2 bits, packed into bytes from the low bits up: how such tensors are read and become numbers. They
// are never stored. A value of several lanes of 4 bits that lie together in memory is the bitcast of its bytes, from
// which convert_packed makes numbers by whole words. Throws error{unsupported} where a kernel would write such a
// tensor. Internal to mlir_bridge.
#pragma once

#include "mlir_bridge/codegen/code_builder.hpp"

namespace kiln::codegen {

inline bool is_packed(element_type type) { return storage_bits(type) < 8; }
[[noreturn]] void refuse_packed(const code_builder& code, element_type type);

// `lanes` consecutive elements from element `offset` on, a multiple of `multiple`: one load where elements of 4 bits
// begin at a byte, else one for each lane.
Value load_packed(code_builder& code, Value pointer, Value offset, element_type type, std::int64_t lanes,
                  std::int64_t multiple);

// Packed integers in compute type of `to`, exactly.
Value convert_packed(code_builder& code, Value v, element_type from, element_type to);

}  // namespace kiln::codegen
