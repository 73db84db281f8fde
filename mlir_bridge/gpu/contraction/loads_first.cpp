#include "mlir_bridge/gpu/contraction/loads_first.hpp"

#include <set>
#include <vector>

#include "mlir_bridge/codegen/mlir_common.hpp"

namespace kiln::gpu {

using mlir::Value;

mlir::Operation* loads_first(mlir::Block& block, mlir::Operation* before) {
  std::vector<mlir::Operation*> emitted;
  for (auto at = before ? std::next(before->getIterator()) : block.begin(); at != block.end(); ++at)
    emitted.push_back(&*at);
  std::set<mlir::Operation*> early;
  for (auto op = emitted.rbegin(); op != emitted.rend(); ++op) {
    if ((*op)->getNumRegions()) return before;
    if (!mlir::isa<mlir::LLVM::LoadOp>(**op) && !early.contains(*op)) continue;
    early.insert(*op);
    for (Value input : (*op)->getOperands())
      if (mlir::Operation* maker = input.getDefiningOp()) early.insert(maker);
  }
  mlir::Operation* last = before;
  for (mlir::Operation* op : emitted) {
    if (!early.contains(op)) continue;
    if (last) op->moveAfter(last);
    else if (op != &block.front()) op->moveBefore(&block.front());
    last = op;
  }
  return last;
}

}  // namespace kiln::gpu
