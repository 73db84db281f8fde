// The order of loads in emitted code. Internal to mlir_bridge/gpu.
#pragma once

namespace mlir {
class Block;
class Operation;
}  // namespace mlir

namespace kiln::gpu {

// In the code that was emitted at the end of the block after `before`, moves loads and the computation of their
// addresses in front of everything else. Returns the last of them, or `before` if there are none.
mlir::Operation* loads_first(mlir::Block& block, mlir::Operation* before);

}  // namespace kiln::gpu
