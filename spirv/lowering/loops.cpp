#include "spirv/lowering/loops.hpp"

namespace kiln::spirv {

using llvm::BasicBlock;
using llvm::Value;
using builder = llvm::IRBuilder<>;

void loop(builder& b, Value* from, Value* to, const std::function<void(Value*)>& body, llvm::MDNode* parallel) {
  llvm::LLVMContext& context = b.getContext();
  llvm::Function* function = b.GetInsertBlock()->getParent();
  BasicBlock *before = b.GetInsertBlock(), *inside = BasicBlock::Create(context, "loop", function),
             *after = BasicBlock::Create(context, "after", function);
  b.CreateCondBr(b.CreateICmpSLT(from, to), inside, after);
  b.SetInsertPoint(inside);
  llvm::PHINode* n = b.CreatePHI(from->getType(), 2);
  n->addIncoming(from, before);
  body(n);
  Value* next = b.CreateNSWAdd(n, llvm::ConstantInt::get(n->getType(), 1));
  n->addIncoming(next, b.GetInsertBlock());
  llvm::BranchInst* back = b.CreateCondBr(b.CreateICmpSLT(next, to), inside, after);
  if (parallel) {
    llvm::Metadata* accesses[] = {llvm::MDString::get(context, "llvm.loop.parallel_accesses"), parallel};
    llvm::Metadata* facts[] = {nullptr, llvm::MDNode::get(context, accesses)};
    llvm::MDNode* id = llvm::MDNode::getDistinct(context, facts);
    id->replaceOperandWith(0, id);
    back->setMetadata(llvm::LLVMContext::MD_loop, id);
  }
  b.SetInsertPoint(after);
}

void when(builder& b, Value* condition, const std::function<void()>& then) {
  llvm::Function* function = b.GetInsertBlock()->getParent();
  BasicBlock *yes = BasicBlock::Create(b.getContext(), "then", function),
             *after = BasicBlock::Create(b.getContext(), "after", function);
  b.CreateCondBr(condition, yes, after);
  b.SetInsertPoint(yes);
  then();
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

}  // namespace kiln::spirv
