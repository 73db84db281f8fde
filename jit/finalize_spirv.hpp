// Code objects in amdgcnspirv (spirv/object.hpp) → native kernels, for any family of targets: the object's rules are
// resolved for these shapes, the reader makes LLVM IR, and the back ends of mlir_bridge finish it. The same payload,
// shapes and target give the same bytes.
//
// Any number of threads at once. Throws error{corrupted} for a damaged payload or module, error{unsupported} naming
// what the reader or the target does not have, error{invalid_model} where a rule does not fit the shapes.
#pragma once

#include <cstddef>
#include <span>

#include "ir/native_kernel.hpp"
#include "ir/shape.hpp"
#include "mlir_bridge/finalize.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln {

// Shapes are static.
native_kernel finalize_spirv(std::span<const std::byte> payload, std::span<const shape> inputs,
                             std::span<const shape> outputs, const target_row& target, finalize_trace* trace = nullptr);

// Whether a payload is of this form: it begins as spirv::serialize writes it. For those who have only bytes (compile
// workers).
bool is_spirv_payload(std::span<const std::byte> payload);

// Part of every cache key of such kernels, as pipeline_version() is of others: changes whenever the same object may
// become other code.
int spirv_pipeline_version();

}  // namespace kiln
