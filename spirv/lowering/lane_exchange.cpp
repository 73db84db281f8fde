#include "spirv/lowering/lane_exchange.hpp"

#include <algorithm>
#include <vector>

#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/Module.h"
#include "spirv/lowering/indices.hpp"
#include "spirv/lowering/words.hpp"
#include "spirv/lowering/work_items.hpp"

namespace kiln::spirv {
namespace {

using llvm::CallInst;
using llvm::Value;
using builder = llvm::IRBuilder<>;
namespace intrinsic = llvm::Intrinsic;

llvm::Function* synchronization_function(llvm::Module& module, synchronization kind, llvm::Type* result,
                                         llvm::ArrayRef<llvm::Type*> parameters) {
  const char* name = std::ranges::find(synchronization_names, kind, &synchronization_name::kind)->name;
  auto* function = llvm::cast<llvm::Function>(
      module.getOrInsertFunction(name, llvm::FunctionType::get(result, parameters, false)).getCallee());
  function->setDoesNotThrow();
  function->addFnAttr(llvm::Attribute::Convergent);
  function->addFnAttr(llvm::Attribute::NoDuplicate);
  return function;
}

Value* synchronize(builder& b, synchronization kind, llvm::ArrayRef<Value*> operands = {}) {
  std::vector<llvm::Type*> types;
  for (Value* v : operands) types.push_back(v->getType());
  llvm::Type* result =
      kind == synchronization::shuffle || kind == synchronization::ballot ? b.getInt32Ty() : b.getVoidTy();
  auto* call = b.CreateCall(synchronization_function(*b.GetInsertBlock()->getModule(), kind, result, types), operands);
  call->setConvergent();
  return call;
}

Value* from_lane(builder& b, Value* v, Value* from) {
  return word_by_word(b, v, [&](Value* word) { return synchronize(b, synchronization::shuffle, {word, from}); });
}

}  // namespace

Value* lane_replacement(builder& b, CallInst& c, Value* lane) {
  switch (c.getIntrinsicID()) {
    case intrinsic::amdgcn_s_barrier: return synchronize(b, synchronization::barrier);
    case intrinsic::amdgcn_wave_barrier: return synchronize(b, synchronization::wave_barrier);
    case intrinsic::amdgcn_mbcnt_lo: {
      if (auto* all = llvm::dyn_cast<llvm::ConstantInt>(c.getArgOperand(0)); all && all->isMinusOne())
        return b.CreateAdd(lane, c.getArgOperand(1));
      Value* below = b.CreateSub(b.CreateShl(b.getInt32(1), lane), b.getInt32(1));
      return b.CreateAdd(b.CreateUnaryIntrinsic(intrinsic::ctpop, b.CreateAnd(c.getArgOperand(0), below)),
                         c.getArgOperand(1));
    }
    case intrinsic::amdgcn_mbcnt_hi: return c.getArgOperand(1);
    case intrinsic::amdgcn_ds_bpermute:
      return synchronize(b, synchronization::shuffle, {c.getArgOperand(1), b.CreateLShr(c.getArgOperand(0), 2)});
    case intrinsic::amdgcn_readlane: return from_lane(b, c.getArgOperand(0), c.getArgOperand(1));
    case intrinsic::amdgcn_readfirstlane:
      return from_lane(b, c.getArgOperand(0),
                       b.CreateIntrinsic(b.getInt32Ty(), intrinsic::cttz,
                                         {synchronize(b, synchronization::ballot, {b.getTrue()}), b.getTrue()}));
    case intrinsic::amdgcn_ballot:
      return b.CreateZExtOrTrunc(synchronize(b, synchronization::ballot, {c.getArgOperand(0)}), c.getType());
    default: return nullptr;
  }
}

void drop_synchronization(llvm::Function& body) {
  for (CallInst* c : calls_of(body)) {
    const auto found =
        std::ranges::find(synchronization_names, c->getCalledFunction()->getName(), &synchronization_name::name);
    if (found == std::end(synchronization_names)) continue;
    builder b(c);
    if (found->kind == synchronization::shuffle) c->replaceAllUsesWith(c->getArgOperand(0));
    if (found->kind == synchronization::ballot) c->replaceAllUsesWith(b.CreateZExt(c->getArgOperand(0), c->getType()));
    c->eraseFromParent();
  }
}

}  // namespace kiln::spirv
