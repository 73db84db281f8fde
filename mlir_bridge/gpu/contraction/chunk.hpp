// Matrices in shared memory: rows of chunks of 16 bytes along k, swizzled so that neither eight threads that read the
// same chunk of eight rows, nor eight that read four chunks of two rows, nor those that write, meet in a bank. Internal
// to mlir_bridge/gpu.
#pragma once

#include "ir/element_type.hpp"
#include "mlir_bridge/codegen/code_builder.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln::gpu {

using namespace codegen;

inline constexpr std::int64_t chunk_bytes = 16;
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
inline dim ceil_div(const dim& a, std::int64_t b) { return (a + b - 1) / b; }
inline std::int64_t elements_of_chunk(element_type type) { return chunk_bytes * 8 / storage_bits(type); }

Value bit_and(code_builder& code, Value a, std::int64_t mask);
Value bit_xor(code_builder& code, Value a, Value b);
// A condition that both may leave out.
Value both(code_builder& code, Value a, Value b);

// What chunk numbers of a row are exclusive-ored with; depends on row % 8 only.
Value swizzle(code_builder& code, Value row, std::int64_t chunks_of_row);

// `bytes` from `pointer`.
Value byte_address(code_builder& code, Value pointer, Value bytes);
Value byte_address(code_builder& code, Value pointer, std::int64_t bytes);

// Four 32-bit words.
mlir::Type chunk_type(code_builder& code);
Value load_chunk(code_builder& code, Value address);
void store_chunk(code_builder& code, Value address, Value chunk);

// The bits of a vector as another type of the same size.
Value reinterpret(code_builder& code, Value v, mlir::Type type);
// The same number, the same for all threads, without the compiler knowing which: it unrolls short loops entirely, and
// reads ahead until registers run out.
Value unknown(code_builder& code, target_family family, Value index);
// Elements [first, first + count) of a vector; a scalar for one.
Value part_of(code_builder& code, Value vector, std::int64_t first, std::int64_t count);
// Vectors or scalars one after another.
Value joined(code_builder& code, std::span<const Value> parts);

}  // namespace kiln::gpu
