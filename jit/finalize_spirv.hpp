// Compiles code objects in amdgcnspirv (spirv/object.hpp) to native kernels, for any family of targets. It resolves the
// object's rules for the given shapes, translates the SPIR-V module to LLVM IR, and runs the back ends of mlir_bridge.
// Deterministic: the same payload, shapes and target give the same bytes.
//
// May be called from several threads at once. Throws error{corrupted} for a corrupt payload or module,
// error{unsupported} naming the feature that the reader or the target lacks, error{invalid_model} if a rule does not
// fit the shapes.
#pragma once

#include <cstddef>
#include <span>

#include "ir/native_kernel.hpp"
#include "ir/shape.hpp"
#include "mlir_bridge/finalize.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

// With open shapes, the result is an open kernel (ir/native_kernel.hpp).
native_kernel finalize_spirv(std::span<const std::byte> payload, std::span<const shape> inputs,
                             std::span<const shape> outputs, const target_row& target, finalize_trace* trace = nullptr);

// Whether a payload is an amdgcnspirv object, judged by the magic that spirv::serialize writes. For code that has only
// the bytes (compile workers).
bool is_spirv_payload(std::span<const std::byte> payload);

}  // namespace kiln
