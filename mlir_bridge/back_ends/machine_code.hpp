// Compiles LLVM IR to a relocatable object in memory. Any number of threads may compile at once: each thread has its
// own TargetMachine per target. Internal to mlir_bridge.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "mlir_bridge/targets/target_row.hpp"

namespace llvm {
class Module;
}

namespace kiln {

// The loop optimizations that LLVM may apply. Our generators vectorize themselves; `vectorize` (loop and SLP
// vectorization) is for code from other sources.
enum class loop_optimization : std::uint8_t { unroll, vectorize };

namespace codegen {

// Sets the module's data layout and triple, runs LLVM's optimizer, and prepares the module for code generation
// (back_end::after_optimization). `short_pipeline`: with kernel_pipeline(), if the loops are those of our generators.
// Throws error{unsupported} for a triple that this build has no back end for.
void optimize(llvm::Module& module, const target_row& target, loop_optimization loops, bool short_pipeline);
// Returns the assembly text (PTX for NVIDIA).
std::string emit_assembly(llvm::Module& module, const target_row& target);
// Returns the object; consumes the function bodies of the optimized module. If `assembly` is not null, code is
// generated a second time, as text.
std::vector<std::byte> emit_object(llvm::Module& module, const target_row& target, std::string* assembly);

}  // namespace codegen
}  // namespace kiln
