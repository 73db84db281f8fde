#include "spirv/lowering/scheduler.hpp"

#include "spirv/lowering/loops.hpp"
#include "spirv/lowering/lowering.hpp"

namespace kiln::spirv {

using llvm::BasicBlock;
using llvm::Value;
namespace intrinsic = llvm::Intrinsic;

void scheduler::run() {
  std::uint32_t width = set_.between_lanes ? host_wave : items_;
  Value* items = b_.getInt32(items_);
  loop(b_, b_.getInt32(0), items, [&](Value* n) { b_.CreateStore(b_.getInt32(0), element(set_.standing_at, n)); });
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  BasicBlock *round = BasicBlock::Create(b_.getContext(), "round", function),
             *done = BasicBlock::Create(b_.getContext(), "done", function);
  b_.CreateBr(round);
  b_.SetInsertPoint(round);
  loop(b_, b_.getInt32(0), b_.getInt32((items_ + width - 1) / width), [&](Value* wave) {
    Value* first = b_.CreateNSWMul(wave, b_.getInt32(width));
    run_wave(first, b_.CreateBinaryIntrinsic(intrinsic::smin, b_.CreateNSWAdd(first, b_.getInt32(width)), items));
  });
  // At this point every item is at a barrier or has finished. Release the items at the barrier.
  llvm::AllocaInst* going = variable();
  b_.CreateStore(b_.getInt32(0), going);
  loop(b_, b_.getInt32(0), items, [&](Value* n) {
    Value *place = element(set_.standing_at, n), *standing = b_.CreateLoad(b_.getInt32Ty(), place);
    Value* ended = b_.CreateICmpEQ(standing, b_.getInt32(finished));
    b_.CreateStore(b_.CreateSelect(ended, standing, b_.CreateAnd(standing, b_.getInt32(~waits))), place);
    b_.CreateStore(
        b_.CreateOr(b_.CreateLoad(b_.getInt32Ty(), going), b_.CreateZExt(b_.CreateNot(ended), b_.getInt32Ty())), going);
  });
  b_.CreateCondBr(b_.CreateICmpNE(b_.CreateLoad(b_.getInt32Ty(), going), b_.getInt32(0)), round, done);
  b_.SetInsertPoint(done);
}

void scheduler::run_wave(Value* first, Value* last) {
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  BasicBlock *choose = BasicBlock::Create(b_.getContext(), "choose", function),
             *leave = BasicBlock::Create(b_.getContext(), "leave", function);
  llvm::AllocaInst *earliest = variable(), *together = variable();
  b_.CreateBr(choose);
  b_.SetInsertPoint(choose);
  b_.CreateStore(b_.getInt32(finished), earliest);
  loop(b_, first, last, [&](Value* n) {
    b_.CreateStore(
        b_.CreateBinaryIntrinsic(intrinsic::umin, b_.CreateLoad(b_.getInt32Ty(), earliest), load(set_.standing_at, n)),
        earliest);
  });
  Value* region = b_.CreateLoad(b_.getInt32Ty(), earliest);
  b_.CreateStore(b_.getInt32(0), together);
  loop(b_, first, last, [&](Value* n) {
    Value* here = b_.CreateZExt(b_.CreateICmpEQ(load(set_.standing_at, n), region), b_.getInt32Ty());
    b_.CreateStore(b_.CreateAdd(b_.CreateLoad(b_.getInt32Ty(), together), here), together);
  });
  Value* all = b_.CreateICmpEQ(b_.CreateLoad(b_.getInt32Ty(), together), b_.CreateSub(last, first));
  llvm::SwitchInst* jump = b_.CreateSwitch(region, leave, static_cast<unsigned>(set_.regions.size()));
  for (std::size_t k = 0; k < set_.regions.size(); ++k) {
    BasicBlock* run = BasicBlock::Create(b_.getContext(), "region", function);
    jump->addCase(b_.getInt32(static_cast<std::uint32_t>(k)), run);
    b_.SetInsertPoint(run);
    if (k) exchange(set_.regions[k].begin, static_cast<std::uint32_t>(k), first, last);
    run_region(set_.regions[k], static_cast<std::uint32_t>(k), first, last, all);
    b_.CreateBr(choose);
  }
  b_.SetInsertPoint(leave);
}

void scheduler::exchange(synchronization kind, std::uint32_t k, Value* first, Value* last) {
  auto stands_here = [&](Value* n) { return b_.CreateICmpEQ(load(set_.standing_at, n), b_.getInt32(k)); };
  if (kind == synchronization::ballot) {
    llvm::AllocaInst* mask = variable();
    b_.CreateStore(b_.getInt32(0), mask);
    loop(b_, first, last, [&](Value* n) {
      Value* bit = b_.CreateShl(b_.CreateAnd(load(set_.value_at, n), b_.getInt32(1)), b_.CreateSub(n, first));
      Value* known = b_.CreateLoad(b_.getInt32Ty(), mask);
      b_.CreateStore(b_.CreateSelect(stands_here(n), b_.CreateOr(known, bit), known), mask);
    });
    Value* result = b_.CreateLoad(b_.getInt32Ty(), mask);
    loop(b_, first, last, [&](Value* n) {
      Value* place = element(set_.result_at, n);
      b_.CreateStore(b_.CreateSelect(stands_here(n), result, b_.CreateLoad(b_.getInt32Ty(), place)), place);
    });
  } else if (kind == synchronization::shuffle) {
    // Reading from a lane that is not active gives 0.
    loop(b_, first, last, [&](Value* n) {
      Value* from = b_.CreateAdd(first, b_.CreateAnd(load(set_.lane_at, n), b_.getInt32(host_wave - 1)));
      Value* exists = b_.CreateICmpSLT(from, last);
      from = b_.CreateSelect(exists, from, first);
      Value* given =
          b_.CreateSelect(b_.CreateAnd(exists, stands_here(from)), load(set_.value_at, from), b_.getInt32(0));
      Value* place = element(set_.result_at, n);
      b_.CreateStore(b_.CreateSelect(stands_here(n), given, b_.CreateLoad(b_.getInt32Ty(), place)), place);
    });
  }
}

void scheduler::run_region(const region& r, std::uint32_t k, Value* first, Value* last, Value* all) {
  auto one = [&](Value* n) {
    std::vector<Value*> arguments = arguments_;
    arguments.insert(arguments.begin() + item_parameter_, n);
    llvm::StoreInst* store = b_.CreateStore(b_.CreateCall(r.function, arguments), element(set_.standing_at, n));
    store->setMetadata(llvm::LLVMContext::MD_access_group, group_);
  };
  llvm::Function* function = b_.GetInsertBlock()->getParent();
  BasicBlock *some = BasicBlock::Create(b_.getContext(), "some", function),
             *every = BasicBlock::Create(b_.getContext(), "every", function),
             *after = BasicBlock::Create(b_.getContext(), "after", function);
  b_.CreateCondBr(all, every, some);
  b_.SetInsertPoint(every);
  loop(b_, first, last, one, group_);
  b_.CreateBr(after);
  b_.SetInsertPoint(some);
  loop(b_, first, last,
       [&](Value* n) { when(b_, b_.CreateICmpEQ(load(set_.standing_at, n), b_.getInt32(k)), [&] { one(n); }); });
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

}  // namespace kiln::spirv
