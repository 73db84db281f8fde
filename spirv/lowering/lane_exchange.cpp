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

llvm::Function* meeting_function(llvm::Module& module, meeting kind, llvm::Type* result,
                                 llvm::ArrayRef<llvm::Type*> parameters) {
  const char* name = std::ranges::find(meeting_names, kind, &meeting_name::kind)->name;
  auto* function = llvm::cast<llvm::Function>(
      module.getOrInsertFunction(name, llvm::FunctionType::get(result, parameters, false)).getCallee());
  function->setDoesNotThrow();
  function->addFnAttr(llvm::Attribute::Convergent);
  function->addFnAttr(llvm::Attribute::NoDuplicate);
  return function;
}

Value* meet(builder& b, meeting kind, llvm::ArrayRef<Value*> operands = {}) {
  std::vector<llvm::Type*> types;
  for (Value* v : operands) types.push_back(v->getType());
  llvm::Type* result = kind == meeting::shuffle || kind == meeting::ballot ? b.getInt32Ty() : b.getVoidTy();
  auto* call = b.CreateCall(meeting_function(*b.GetInsertBlock()->getModule(), kind, result, types), operands);
  call->setConvergent();
  return call;
}

Value* from_lane(builder& b, Value* v, Value* from) {
  return word_by_word(b, v, [&](Value* word) { return meet(b, meeting::shuffle, {word, from}); });
}

}  // namespace

Value* lane_replacement(builder& b, CallInst& c, Value* lane) {
  switch (c.getIntrinsicID()) {
    case intrinsic::amdgcn_s_barrier: return meet(b, meeting::barrier);
    case intrinsic::amdgcn_wave_barrier: return meet(b, meeting::wave_barrier);
    case intrinsic::amdgcn_mbcnt_lo: {
      if (auto* all = llvm::dyn_cast<llvm::ConstantInt>(c.getArgOperand(0)); all && all->isMinusOne())
        return b.CreateAdd(lane, c.getArgOperand(1));
      Value* below = b.CreateSub(b.CreateShl(b.getInt32(1), lane), b.getInt32(1));
      return b.CreateAdd(b.CreateUnaryIntrinsic(intrinsic::ctpop, b.CreateAnd(c.getArgOperand(0), below)),
                         c.getArgOperand(1));
    }
    case intrinsic::amdgcn_mbcnt_hi: return c.getArgOperand(1);
    case intrinsic::amdgcn_ds_bpermute:
      return meet(b, meeting::shuffle, {c.getArgOperand(1), b.CreateLShr(c.getArgOperand(0), 2)});
    case intrinsic::amdgcn_readlane: return from_lane(b, c.getArgOperand(0), c.getArgOperand(1));
    case intrinsic::amdgcn_readfirstlane:
      return from_lane(
          b, c.getArgOperand(0),
          b.CreateIntrinsic(b.getInt32Ty(), intrinsic::cttz, {meet(b, meeting::ballot, {b.getTrue()}), b.getTrue()}));
    case intrinsic::amdgcn_ballot:
      return b.CreateZExtOrTrunc(meet(b, meeting::ballot, {c.getArgOperand(0)}), c.getType());
    default: return nullptr;
  }
}

void meet_nobody(llvm::Function& body) {
  for (CallInst* c : calls_of(body)) {
    const auto found = std::ranges::find(meeting_names, c->getCalledFunction()->getName(), &meeting_name::name);
    if (found == std::end(meeting_names)) continue;
    builder b(c);
    if (found->kind == meeting::shuffle) c->replaceAllUsesWith(c->getArgOperand(0));
    if (found->kind == meeting::ballot) c->replaceAllUsesWith(b.CreateZExt(c->getArgOperand(0), c->getType()));
    c->eraseFromParent();
  }
}

}  // namespace kiln::spirv
