// Matrices in shared memory: rows of 16-byte chunks along k. Chunks are swizzled so that none of three access patterns
// has bank conflicts: eight threads reading the same chunk of eight rows, eight threads reading four chunks of two
// rows, and the writing threads. Internal to mlir_bridge/gpu.
#pragma once

#include "ir/element_type.hpp"
#include "mlir_bridge/codegen/code_builder.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln::gpu {

using namespace codegen;

inline constexpr std::int64_t chunk_bytes = 16;
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
inline dim ceil_div(const dim& a, const dim& b) { return (a + b - 1) / b; }
inline std::int64_t elements_of_chunk(element_type type) { return chunk_bytes * 8 / storage_bits(type); }

Value bit_and(code_builder& code, Value a, std::int64_t mask);
Value bit_xor(code_builder& code, Value a, Value b);
// Returns the conjunction of two conditions. Either may be null (true).
Value both(code_builder& code, Value a, Value b);

// Returns the number that chunk indices of a row are XORed with. It depends only on row % 8.
Value swizzle(code_builder& code, Value row, std::int64_t chunks_of_row);

// Returns the address `bytes` bytes after `pointer`.
Value byte_address(code_builder& code, Value pointer, Value bytes);
Value byte_address(code_builder& code, Value pointer, std::int64_t bytes);

// Returns the type of a chunk: a vector of four 32-bit words.
mlir::Type chunk_type(code_builder& code);
Value load_chunk(code_builder& code, Value address);
void store_chunk(code_builder& code, Value address, Value chunk);
// Four signed bytes.
inline constexpr auto all_minus_128 = static_cast<std::int32_t>(0x80808080u);
// Subtracts 128 from each unsigned byte of a chunk; the results are signed bytes.
Value shifted(code_builder& code, Value chunk);

// Bitcasts a vector to another type of the same size.
Value reinterpret(code_builder& code, Value v, mlir::Type type);
// Returns `index` (uniform across threads) in a form whose value the compiler cannot deduce. Otherwise it unrolls short
// loops completely and hoists loads until it runs out of registers.
Value unknown(code_builder& code, target_family family, Value index);
// Returns elements [first, first + count) of a vector; a scalar if count is 1.
Value part_of(code_builder& code, Value vector, std::int64_t first, std::int64_t count);
// Concatenates vectors or scalars.
Value joined(code_builder& code, std::span<const Value> parts);

}  // namespace kiln::gpu
