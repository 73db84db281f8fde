// The check in front of MLIR's bytecode reader, which trusts counts, indices and use lists in its input: a damaged or
// hostile payload can corrupt its heap, loop or exhaust memory. check_kernel_bytecode() reads the whole payload by the
// rules of MLIR's format 6, as far as Kiln's writer uses it, and accepts what that writer may have written: sections
// and counts that fit the payload's length, references that exist and are not circular, attributes and types whose data
// fit their types, one module with one kernel whose operands are defined before they are used. What the operations mean
// is left to MLIR's verifier and the dialect (kernel_reader.cpp).
//
// Free function without state, safe on any thread. Time and memory grow linearly with the payload; a kernel of 1 KB
// takes some microseconds. Needs no MLIR.
#pragma once

#include <cstddef>
#include <span>

namespace kiln {

// Throws error{corrupted}, error{newer_version} for a newer format or dialect, and error{unsupported} for operations of
// other dialects.
void check_kernel_bytecode(std::span<const std::byte> bytecode);

}  // namespace kiln
