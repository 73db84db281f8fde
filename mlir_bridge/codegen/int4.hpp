// Elements of 4 bits, two to a byte, the first in the low half: how i4 and u4 tensors are read and become numbers. They
// are never stored. A value of several lanes that lie together in memory is the bitcast of its bytes, from which
// convert_int4 makes numbers by whole words. Throws error{unsupported} where a kernel would write such a tensor.
// Internal to mlir_bridge.
#pragma once

#include "mlir_bridge/codegen/code_builder.hpp"

namespace kiln::codegen {

inline bool is_packed(element_type type) { return storage_bits(type) < 8; }
[[noreturn]] void refuse_packed(const code_builder& code, element_type type);

// `lanes` consecutive elements from element `offset` on, a multiple of `multiple`: one load where that is even, else
// one for each lane.
Value load_int4(code_builder& code, Value pointer, Value offset, std::int64_t lanes, std::int64_t multiple);

// i4 or u4 elements in compute type of `to`, exactly.
Value convert_int4(code_builder& code, Value v, element_type from, element_type to);

}  // namespace kiln::codegen
