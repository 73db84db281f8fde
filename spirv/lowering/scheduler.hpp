// Emits the code that runs the regions of a workgroup (work_items.hpp). Internal to spirv/lowering.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "llvm/IR/IRBuilder.h"
#include "spirv/lowering/work_items.hpp"

namespace kiln::spirv {

class scheduler {
 public:
  // Emits into `b` the code that runs one workgroup. `arguments` are those of a region without the item, which is the
  // parameter `item_parameter`.
  scheduler(llvm::IRBuilder<>& b, const region_set& set, std::vector<llvm::Value*> arguments, unsigned item_parameter,
            std::int64_t items, llvm::MDNode* group)
      : b_(b),
        set_(set),
        arguments_(std::move(arguments)),
        item_parameter_(item_parameter),
        items_(static_cast<std::uint32_t>(items)),
        group_(group),
        saved_(arguments_.back()) {}

  void run();

 private:
  llvm::Value* element(std::uint64_t at, llvm::Value* n) {
    return b_.CreateGEP(b_.getInt32Ty(), b_.CreateConstGEP1_64(b_.getInt8Ty(), saved_, at),
                        {b_.CreateZExt(n, b_.getInt64Ty())});
  }
  llvm::Value* load(std::uint64_t at, llvm::Value* n) { return b_.CreateLoad(b_.getInt32Ty(), element(at, n)); }
  llvm::AllocaInst* variable() {
    llvm::IRBuilder<> first(&b_.GetInsertBlock()->getParent()->getEntryBlock(),
                            b_.GetInsertBlock()->getParent()->getEntryBlock().begin());
    return first.CreateAlloca(first.getInt32Ty());
  }

  // Runs items [first, last) until each is at a barrier or has finished. Items at the earliest region run together.
  void run_wave(llvm::Value* first, llvm::Value* last);
  // Exchanges values between the lanes that are at region `k`.
  void exchange(synchronization kind, std::uint32_t k, llvm::Value* first, llvm::Value* last);
  // Runs the items that are at region `k`; `all` is true if all are.
  void run_region(const region& r, std::uint32_t k, llvm::Value* first, llvm::Value* last, llvm::Value* all);

  llvm::IRBuilder<>& b_;
  const region_set& set_;
  std::vector<llvm::Value*> arguments_;
  unsigned item_parameter_;
  std::uint32_t items_;
  llvm::MDNode* group_;
  llvm::Value* saved_;
};

}  // namespace kiln::spirv
