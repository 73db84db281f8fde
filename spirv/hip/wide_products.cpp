#include "spirv/hip/wide_products.hpp"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>

#include <optional>
#include <vector>

namespace kiln::spirv {
namespace {

using llvm::Value;

struct factors {
  Value *a = nullptr, *b = nullptr;
  bool is_signed = false;
};

// Returns the factors if both are extended from at most 64 bits in the same way.
factors factors_of(const llvm::BinaryOperator& product) {
  auto *a = llvm::dyn_cast<llvm::CastInst>(product.getOperand(0)),
       *b = llvm::dyn_cast<llvm::CastInst>(product.getOperand(1));
  if (!a || !b || a->getOpcode() != b->getOpcode() ||
      (a->getOpcode() != llvm::Instruction::ZExt && a->getOpcode() != llvm::Instruction::SExt))
    return {};
  if (a->getSrcTy()->getScalarSizeInBits() > 64 || b->getSrcTy()->getScalarSizeInBits() > 64) return {};
  return {a->getOperand(0), b->getOperand(0), a->getOpcode() == llvm::Instruction::SExt};
}

// Returns by how many bits a user of the product shifts it right, if only 64 bits of the result are used.
std::optional<std::uint64_t> shift_of(const llvm::User& user) {
  const auto* i = llvm::cast<llvm::Instruction>(&user);
  if (llvm::isa<llvm::TruncInst>(i))
    return i->getType()->getScalarSizeInBits() <= 64 ? std::optional<std::uint64_t>(0) : std::nullopt;
  const auto* by = i->getOpcode() == llvm::Instruction::LShr || i->getOpcode() == llvm::Instruction::AShr
                       ? llvm::dyn_cast<llvm::ConstantInt>(i->getOperand(1))
                       : nullptr;
  if (!by || by->getValue().uge(128)) return std::nullopt;
  bool taken = llvm::all_of(i->users(), [](const llvm::User* u) {
    return llvm::isa<llvm::TruncInst>(u) && u->getType()->getScalarSizeInBits() <= 64;
  });
  bool enough = by->getZExtValue() <= 64 || i->getOpcode() == llvm::Instruction::LShr;
  return taken && enough ? std::optional(by->getZExtValue()) : std::nullopt;
}

void split(llvm::BinaryOperator& product, const factors& f) {
  llvm::IRBuilder<> b(&product);
  llvm::Type* i64 = b.getInt64Ty();
  auto extended = [&](Value* v) { return f.is_signed ? b.CreateSExt(v, i64) : b.CreateZExt(v, i64); };
  auto low_word = [&](Value* v) { return b.CreateAnd(v, b.getInt64(0xffffffffu)); };
  auto high_word = [&](Value* v) { return b.CreateLShr(v, 32); };
  Value *x = extended(f.a), *y = extended(f.b), *low = b.CreateMul(x, y);
  Value* first = b.CreateMul(low_word(x), low_word(y));
  Value* middle = b.CreateAdd(b.CreateMul(high_word(x), low_word(y)), high_word(first));
  Value* other = b.CreateAdd(b.CreateMul(low_word(x), high_word(y)), low_word(middle));
  Value* high = b.CreateAdd(b.CreateAdd(b.CreateMul(high_word(x), high_word(y)), high_word(middle)), high_word(other));
  if (f.is_signed)
    high = b.CreateSub(b.CreateSub(high, b.CreateAnd(b.CreateAShr(x, 63), y)), b.CreateAnd(b.CreateAShr(y, 63), x));
  std::vector<llvm::Instruction*> dead;
  auto take = [&](llvm::Instruction* trunc, std::uint64_t shift) {
    Value* bits = shift == 0    ? low
                  : shift == 64 ? high
                  : shift > 64  ? b.CreateLShr(high, shift - 64)
                                : b.CreateOr(b.CreateLShr(low, shift), b.CreateShl(high, 64 - shift));
    trunc->replaceAllUsesWith(b.CreateTrunc(bits, trunc->getType()));
    dead.push_back(trunc);
  };
  for (llvm::User* user : product.users()) {
    auto* i = llvm::cast<llvm::Instruction>(user);
    std::uint64_t shift = *shift_of(*user);
    if (llvm::isa<llvm::TruncInst>(i)) {
      take(i, 0);
      continue;
    }
    for (llvm::User* trunc : i->users()) take(llvm::cast<llvm::Instruction>(trunc), shift);
    dead.push_back(i);
  }
  for (llvm::Instruction* i : dead) i->eraseFromParent();
  product.eraseFromParent();
}

}  // namespace

void split_wide_products(llvm::Function& function) {
  std::vector<llvm::BinaryOperator*> products;
  for (llvm::Instruction& i : llvm::instructions(function))
    if (i.getOpcode() == llvm::Instruction::Mul && i.getType()->isIntegerTy(128))
      products.push_back(llvm::cast<llvm::BinaryOperator>(&i));
  for (llvm::BinaryOperator* product : products)
    if (factors f = factors_of(*product);
        f.a && llvm::all_of(product->users(), [](const llvm::User* u) { return shift_of(*u).has_value(); }))
      split(*product, f);
}

}  // namespace kiln::spirv
