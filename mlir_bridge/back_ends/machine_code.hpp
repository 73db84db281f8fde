// LLVM IR → relocatable object, in memory. Any number of threads at once: each has its own TargetMachine per target.
// Internal to mlir_bridge.
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

// What LLVM may do with loops. Our generators vectorize; unrolling costs compile time and gains nothing where the
// generator has written several accumulators already. `vectorize` is for code that no generator of ours has made: loops
// and straight code.
enum class loop_optimization : std::uint8_t { keep, unroll, vectorize };

namespace codegen {

// Sets the module's data layout and triple, optimizes it, and readies it for code (back_end::after_optimization).
// Throws error{unsupported} for a triple that this build has no back end for.
void optimize(llvm::Module& module, const target_row& target, loop_optimization loops);
// The assembly text (PTX for NVIDIA).
std::string emit_assembly(llvm::Module& module, const target_row& target);
// Consumes the optimized module's function bodies; `assembly` gets the text as well where it is not null (it compiles a
// second time).
std::vector<std::byte> emit_object(llvm::Module& module, const target_row& target, std::string* assembly);

}  // namespace codegen
}  // namespace kiln
