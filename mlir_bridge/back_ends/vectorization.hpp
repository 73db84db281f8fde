// The other way to optimize (machine_code.hpp): for code that no generator of ours has vectorized. Internal to
// mlir_bridge.
#pragma once

#include "mlir_bridge/targets/target_row.hpp"

namespace llvm {
class Module;
}

namespace kiln::codegen {

// As optimize(), with LLVM's vectorizers of loops and of straight code.
void optimize_and_vectorize(llvm::Module& module, const target_row& target);

}  // namespace kiln::codegen
