// Arithmetic, comparisons and bit operations. Instructions that differ only in an opcode are rows of a table.
#include "spirv/reader/translator.hpp"

namespace kiln::spirv {

using llvm::CmpInst;
using llvm::Instruction;
using spv::Decoration;
using spv::Op;

namespace {

struct binary_row {
  Op opcode;
  Instruction::BinaryOps operation;
};
constexpr binary_row binaries[] = {
    {Op::OpIAdd, Instruction::Add},
    {Op::OpISub, Instruction::Sub},
    {Op::OpIMul, Instruction::Mul},
    {Op::OpUDiv, Instruction::UDiv},
    {Op::OpSDiv, Instruction::SDiv},
    {Op::OpUMod, Instruction::URem},
    {Op::OpSRem, Instruction::SRem},
    {Op::OpFAdd, Instruction::FAdd},
    {Op::OpFSub, Instruction::FSub},
    {Op::OpFMul, Instruction::FMul},
    {Op::OpFDiv, Instruction::FDiv},
    {Op::OpFRem, Instruction::FRem},
    {Op::OpShiftLeftLogical, Instruction::Shl},
    {Op::OpShiftRightLogical, Instruction::LShr},
    {Op::OpShiftRightArithmetic, Instruction::AShr},
    {Op::OpBitwiseAnd, Instruction::And},
    {Op::OpBitwiseOr, Instruction::Or},
    {Op::OpBitwiseXor, Instruction::Xor},
    {Op::OpLogicalAnd, Instruction::And},
    {Op::OpLogicalOr, Instruction::Or},
    {Op::OpLogicalNotEqual, Instruction::Xor},
};

struct compare_row {
  Op opcode;
  CmpInst::Predicate predicate;
};
constexpr compare_row compares[] = {
    {Op::OpIEqual, CmpInst::ICMP_EQ},
    {Op::OpINotEqual, CmpInst::ICMP_NE},
    {Op::OpUGreaterThan, CmpInst::ICMP_UGT},
    {Op::OpSGreaterThan, CmpInst::ICMP_SGT},
    {Op::OpUGreaterThanEqual, CmpInst::ICMP_UGE},
    {Op::OpSGreaterThanEqual, CmpInst::ICMP_SGE},
    {Op::OpULessThan, CmpInst::ICMP_ULT},
    {Op::OpSLessThan, CmpInst::ICMP_SLT},
    {Op::OpULessThanEqual, CmpInst::ICMP_ULE},
    {Op::OpSLessThanEqual, CmpInst::ICMP_SLE},
    {Op::OpLogicalEqual, CmpInst::ICMP_EQ},
    {Op::OpPtrEqual, CmpInst::ICMP_EQ},
    {Op::OpPtrNotEqual, CmpInst::ICMP_NE},
    {Op::OpFOrdEqual, CmpInst::FCMP_OEQ},
    {Op::OpFUnordEqual, CmpInst::FCMP_UEQ},
    {Op::OpFOrdNotEqual, CmpInst::FCMP_ONE},
    {Op::OpFUnordNotEqual, CmpInst::FCMP_UNE},
    {Op::OpFOrdLessThan, CmpInst::FCMP_OLT},
    {Op::OpFUnordLessThan, CmpInst::FCMP_ULT},
    {Op::OpFOrdGreaterThan, CmpInst::FCMP_OGT},
    {Op::OpFUnordGreaterThan, CmpInst::FCMP_UGT},
    {Op::OpFOrdLessThanEqual, CmpInst::FCMP_OLE},
    {Op::OpFUnordLessThanEqual, CmpInst::FCMP_ULE},
    {Op::OpFOrdGreaterThanEqual, CmpInst::FCMP_OGE},
    {Op::OpFUnordGreaterThanEqual, CmpInst::FCMP_UGE},
    {Op::OpLessOrGreater, CmpInst::FCMP_ONE},
    {Op::OpOrdered, CmpInst::FCMP_ORD},
    {Op::OpUnordered, CmpInst::FCMP_UNO},
};

struct flag_row {
  std::uint32_t bit;  // bit of the decoration FPFastMathMode
  void (llvm::FastMathFlags::*set)(bool);
};
constexpr flag_row fast_math_flags[] = {
    {0x1, &llvm::FastMathFlags::setNoNaNs},        {0x2, &llvm::FastMathFlags::setNoInfs},
    {0x4, &llvm::FastMathFlags::setNoSignedZeros}, {0x8, &llvm::FastMathFlags::setAllowReciprocal},
    {0x10, &llvm::FastMathFlags::setFast},         {0x20000, &llvm::FastMathFlags::setAllowReassoc},
};

template <class Row, std::size_t N>
const Row* row_of(const Row (&rows)[N], Op opcode) {
  for (const Row& row : rows)
    if (row.opcode == opcode) return &row;
  return nullptr;
}

}  // namespace

// Nothing is contracted here: fused operations in the source are already fma or fmuladd (spirv/README.md).
void translator::set_fast_math_flags(const instruction_words& i) {
  llvm::FastMathFlags flags;
  if (const decoration* d = i.result ? find(i.result, Decoration::FPFastMathMode) : nullptr; d && !d->words.empty())
    for (const flag_row& row : fast_math_flags)
      if (d->words[0] & row.bit) (flags.*row.set)(true);
  b_.setFastMathFlags(flags);
}

llvm::Value* translator::float_operand(std::size_t k, const instruction_words& i) const {
  llvm::Value* v = value(i.operands[k]);
  require(v->getType()->isFPOrFPVectorTy(), i, "an operand is not a float");
  return v;
}

llvm::Value* translator::binary_operation(Instruction::BinaryOps operation, const instruction_words& i) {
  llvm::Value *x = value(i.operands[0]), *y = value(i.operands[1]);
  llvm::Type* t = llvm_type(i.type);
  bool floating = operation == Instruction::FAdd || operation == Instruction::FSub || operation == Instruction::FMul ||
                  operation == Instruction::FDiv || operation == Instruction::FRem;
  require(x->getType() == t && (floating ? t->isFPOrFPVectorTy() : t->isIntOrIntVectorTy()), i);
  if (Instruction::isShift(operation)) {
    require(y->getType()->isIntOrIntVectorTy() && same_lanes(t, y->getType()), i);
    y = b_.CreateZExtOrTrunc(y, t);
  }
  require(y->getType() == t, i);
  llvm::Value* result = b_.CreateBinOp(operation, x, y);
  if (auto* made = llvm::dyn_cast<Instruction>(result); made && llvm::isa<llvm::OverflowingBinaryOperator>(made)) {
    if (find(i.result, Decoration::NoSignedWrap)) made->setHasNoSignedWrap(true);
    if (find(i.result, Decoration::NoUnsignedWrap)) made->setHasNoUnsignedWrap(true);
  }
  return result;
}

llvm::Value* translator::comparison(CmpInst::Predicate predicate, const instruction_words& i) {
  llvm::Value *x = value(i.operands[0]), *y = value(i.operands[1]);
  require(x->getType() == y->getType(), i);
  auto opcode = static_cast<Op>(i.opcode);
  bool pointers = opcode == Op::OpPtrEqual || opcode == Op::OpPtrNotEqual;
  require(CmpInst::isFPPredicate(predicate) ? x->getType()->isFPOrFPVectorTy()
          : pointers                        ? x->getType()->isPointerTy()
                                            : x->getType()->isIntOrIntVectorTy() || x->getType()->isPtrOrPtrVectorTy(),
          i);
  return b_.CreateCmp(predicate, x, y);
}

// The remainder that has the sign of the divisor: adds the divisor to the remainder of a division that rounds toward
// zero if their signs differ.
llvm::Value* translator::floored_remainder(const instruction_words& i) {
  const bool floats = static_cast<Op>(i.opcode) == Op::OpFMod;
  auto operand = [&](std::size_t k) { return floats ? float_operand(k, i) : integer_operand(i.operands[k], i); };
  llvm::Value *x = operand(0), *y = operand(1);
  require(x->getType() == y->getType(), i);
  llvm::Value *r = floats ? b_.CreateFRem(x, y) : b_.CreateSRem(x, y),
              *zero = llvm::Constant::getNullValue(x->getType());
  if (!floats) {
    llvm::Value* nonzero = b_.CreateICmpNE(r, zero);
    llvm::Value* differ = b_.CreateAnd(nonzero, b_.CreateICmpSLT(b_.CreateXor(r, y), zero));
    return b_.CreateSelect(differ, b_.CreateAdd(r, y), r);
  }
  llvm::Value* nonzero = b_.CreateFCmpONE(r, zero);
  llvm::Value *negative_r = b_.CreateFCmpOLT(r, zero), *negative_y = b_.CreateFCmpOLT(y, zero);
  llvm::Value* differ = b_.CreateAnd(nonzero, b_.CreateXor(negative_r, negative_y));
  return b_.CreateSelect(differ, b_.CreateFAdd(r, y), r);
}

llvm::Value* translator::dot_product(const instruction_words& i) {
  llvm::Value *x = float_operand(0, i), *y = float_operand(1, i), *sum = nullptr;
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  require(vector && x->getType() == y->getType(), i);
  llvm::Value* products = b_.CreateFMul(x, y);
  for (unsigned k = 0; k < vector->getNumElements(); ++k) {
    llvm::Value* product = b_.CreateExtractElement(products, k);
    sum = sum ? b_.CreateFAdd(sum, product) : product;
  }
  return sum;
}

// A struct of the sum or difference, and of the carry or borrow as an integer of the same type.
llvm::Value* translator::sum_with_carry(const instruction_words& i) {
  llvm::Value *x = integer_operand(i.operands[0], i), *y = integer_operand(i.operands[1], i);
  auto* pair = llvm::dyn_cast<llvm::StructType>(llvm_type(i.type));
  require(x->getType() == y->getType() && pair && pair->getNumElements() == 2 &&
              pair->getElementType(0) == x->getType() && pair->getElementType(1) == x->getType(),
          i);
  const bool add = static_cast<Op>(i.opcode) == Op::OpIAddCarry;
  llvm::Value* both =
      b_.CreateBinaryIntrinsic(add ? llvm::Intrinsic::uadd_with_overflow : llvm::Intrinsic::usub_with_overflow, x, y);
  llvm::Value* result = b_.CreateInsertValue(llvm::PoisonValue::get(pair), b_.CreateExtractValue(both, 0), 0);
  return b_.CreateInsertValue(result, b_.CreateZExt(b_.CreateExtractValue(both, 1), x->getType()), 1);
}

llvm::Value* translator::sign_bit(const instruction_words& i) {
  llvm::Value* x = float_operand(0, i);
  llvm::Type* bits = llvm::Type::getIntNTy(context_, x->getType()->getScalarSizeInBits());
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType()))
    bits = llvm::FixedVectorType::get(bits, vector->getNumElements());
  return b_.CreateICmpSLT(b_.CreateBitCast(x, bits), llvm::Constant::getNullValue(bits));
}

bool translator::emit_arithmetic(const instruction_words& i) {
  auto opcode = static_cast<Op>(i.opcode);
  set_fast_math_flags(i);
  if (const binary_row* row = row_of(binaries, opcode)) return define(i, binary_operation(row->operation, i)), true;
  if (const compare_row* row = row_of(compares, opcode)) return define(i, comparison(row->predicate, i)), true;
  switch (opcode) {
    case Op::OpSNegate: define(i, b_.CreateNeg(integer_operand(i.operands[0], i))); return true;
    case Op::OpNot:
    case Op::OpLogicalNot: define(i, b_.CreateNot(integer_operand(i.operands[0], i))); return true;
    case Op::OpFNegate: define(i, b_.CreateFNeg(float_operand(0, i))); return true;
    case Op::OpSMod:
    case Op::OpFMod: define(i, floored_remainder(i)); return true;
    case Op::OpSelect: {
      llvm::Value *c = value(i.operands[0]), *x = value(i.operands[1]), *y = value(i.operands[2]);
      require(c->getType()->isIntOrIntVectorTy(1) && x->getType() == y->getType() && x->getType()->isFirstClassType(),
              i);
      require(c->getType()->isIntegerTy(1) || same_lanes(c->getType(), x->getType()), i);
      define(i, b_.CreateSelect(c, x, y));
      return true;
    }
    case Op::OpVectorTimesScalar: {
      llvm::Value *x = float_operand(0, i), *y = float_operand(1, i);
      auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
      require(vector && vector->getElementType() == y->getType(), i);
      define(i, b_.CreateFMul(x, b_.CreateVectorSplat(vector->getNumElements(), y)));
      return true;
    }
    case Op::OpDot: define(i, dot_product(i)); return true;
    case Op::OpIAddCarry:
    case Op::OpISubBorrow: define(i, sum_with_carry(i)); return true;
    case Op::OpAny:
    case Op::OpAll: {
      llvm::Value* x = value(i.operands[0]);
      require(x->getType()->isVectorTy() && x->getType()->isIntOrIntVectorTy(1), i);
      define(i, opcode == Op::OpAny ? b_.CreateOrReduce(x) : b_.CreateAndReduce(x));
      return true;
    }
    case Op::OpIsNan: define(i, b_.CreateFCmpUNO(float_operand(0, i), value(i.operands[0]))); return true;
    case Op::OpIsInf:
    case Op::OpIsFinite: {
      llvm::Value* magnitude = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, float_operand(0, i));
      llvm::Value* infinity = llvm::ConstantFP::getInfinity(magnitude->getType());
      define(i, opcode == Op::OpIsInf ? b_.CreateFCmpOEQ(magnitude, infinity) : b_.CreateFCmpOLT(magnitude, infinity));
      return true;
    }
    case Op::OpSignBitSet: define(i, sign_bit(i)); return true;
    case Op::OpBitReverse:
      define(i, b_.CreateUnaryIntrinsic(llvm::Intrinsic::bitreverse, integer_operand(i.operands[0], i)));
      return true;
    case Op::OpBitCount: {
      llvm::Value* count = b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, integer_operand(i.operands[0], i));
      require(llvm_type(i.type)->isIntOrIntVectorTy() && same_lanes(llvm_type(i.type), count->getType()), i);
      define(i, b_.CreateZExtOrTrunc(count, llvm_type(i.type)));
      return true;
    }
    case Op::OpAssumeTrueKHR:
      require(value(i.operands[0])->getType()->isIntegerTy(1), i);
      b_.CreateAssumption(value(i.operands[0]));
      return true;
    case Op::OpExpectKHR: define(i, value(i.operands[0])); return true;
    default: return false;
  }
}

}  // namespace kiln::spirv
