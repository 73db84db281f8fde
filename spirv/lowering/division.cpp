// Gives integer division on the host the semantics of GPUs: division by zero gives all bits set, with the dividend as
// the remainder; the smallest integer divided by -1 is itself. An x86 processor would trap instead.
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/PatternMatch.h"
#include "spirv/lowering/work_items.hpp"

namespace kiln::spirv {
namespace {

using llvm::Instruction;
using llvm::Value;

bool is_signed(const Instruction& i) {
  return i.getOpcode() == Instruction::SDiv || i.getOpcode() == Instruction::SRem;
}

bool can_trap(const Instruction& i) {
  const llvm::APInt* divisor = nullptr;
  if (!i.isIntDivRem()) return false;
  if (!llvm::PatternMatch::match(i.getOperand(1), llvm::PatternMatch::m_APInt(divisor))) return true;
  return divisor->isZero() || (is_signed(i) && divisor->isAllOnes());
}

void guard(llvm::BinaryOperator& i) {
  llvm::IRBuilder<> b(&i);
  llvm::Type* t = i.getType();
  Value *a = i.getOperand(0), *d = i.getOperand(1), *zero = llvm::Constant::getNullValue(t),
        *one = llvm::ConstantInt::get(t, 1), *ones = llvm::Constant::getAllOnesValue(t);
  bool remainder = i.getOpcode() == Instruction::URem || i.getOpcode() == Instruction::SRem;
  Value *by_zero = b.CreateICmpEQ(d, zero), *odd = by_zero, *by_minus_one = nullptr;
  if (is_signed(i)) {
    by_minus_one = b.CreateICmpEQ(d, ones);
    odd = b.CreateOr(by_zero, by_minus_one);
  }
  Value* result = b.CreateBinOp(i.getOpcode(), a, b.CreateSelect(odd, one, d));
  if (by_minus_one) result = b.CreateSelect(by_minus_one, remainder ? zero : b.CreateNeg(a), result);
  result = b.CreateSelect(by_zero, remainder ? a : ones, result);
  i.replaceAllUsesWith(result);
  i.eraseFromParent();
}

}  // namespace

void guard_divisions(llvm::Function& body) {
  std::vector<llvm::BinaryOperator*> found;
  for (llvm::BasicBlock& block : body)
    for (Instruction& i : block)
      if (can_trap(i)) found.push_back(llvm::cast<llvm::BinaryOperator>(&i));
  for (llvm::BinaryOperator* i : found) guard(*i);
}

}  // namespace kiln::spirv
