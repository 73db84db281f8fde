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

bool translator::emit_arithmetic(const instruction_words& i) {
  auto opcode = static_cast<Op>(i.opcode);
  // Nothing is contracted here: fused operations in the source are already fma or fmuladd (spirv/README.md).
  llvm::FastMathFlags flags;
  if (const decoration* d = i.result ? find(i.result, Decoration::FPFastMathMode) : nullptr; d && !d->words.empty())
    for (const flag_row& row : fast_math_flags)
      if (d->words[0] & row.bit) (flags.*row.set)(true);
  b_.setFastMathFlags(flags);

  auto operand = [&](std::size_t k) { return value(i.operands[k]); };
  auto floats = [&](std::size_t k) {
    llvm::Value* v = operand(k);
    require(v->getType()->isFPOrFPVectorTy(), i, "an operand is not a float");
    return v;
  };
  if (const binary_row* row = row_of(binaries, opcode)) {
    llvm::Value *x = operand(0), *y = operand(1);
    llvm::Type* t = llvm_type(i.type);
    bool floating = row->operation == Instruction::FAdd || row->operation == Instruction::FSub ||
                    row->operation == Instruction::FMul || row->operation == Instruction::FDiv ||
                    row->operation == Instruction::FRem;
    require(x->getType() == t && (floating ? t->isFPOrFPVectorTy() : t->isIntOrIntVectorTy()), i);
    bool shift = Instruction::isShift(row->operation);
    if (shift) {
      require(y->getType()->isIntOrIntVectorTy() && same_lanes(t, y->getType()), i);
      y = b_.CreateZExtOrTrunc(y, t);
    }
    require(y->getType() == t, i);
    llvm::Value* result = b_.CreateBinOp(row->operation, x, y);
    if (auto* instruction = llvm::dyn_cast<llvm::OverflowingBinaryOperator>(result);
        instruction && llvm::isa<Instruction>(result)) {
      auto* made = llvm::cast<Instruction>(result);
      if (find(i.result, Decoration::NoSignedWrap)) made->setHasNoSignedWrap(true);
      if (find(i.result, Decoration::NoUnsignedWrap)) made->setHasNoUnsignedWrap(true);
    }
    define(i, result);
    return true;
  }
  if (const compare_row* row = row_of(compares, opcode)) {
    llvm::Value *x = operand(0), *y = operand(1);
    require(x->getType() == y->getType(), i);
    bool pointers = opcode == Op::OpPtrEqual || opcode == Op::OpPtrNotEqual;
    require(CmpInst::isFPPredicate(row->predicate) ? x->getType()->isFPOrFPVectorTy()
            : pointers ? x->getType()->isPointerTy()
                       : x->getType()->isIntOrIntVectorTy() || x->getType()->isPtrOrPtrVectorTy(),
            i);
    define(i, b_.CreateCmp(row->predicate, x, y));
    return true;
  }
  switch (opcode) {
    case Op::OpSNegate: define(i, b_.CreateNeg(integer_operand(i.operands[0], i))); return true;
    case Op::OpNot:
    case Op::OpLogicalNot: define(i, b_.CreateNot(integer_operand(i.operands[0], i))); return true;
    case Op::OpFNegate: define(i, b_.CreateFNeg(floats(0))); return true;
    case Op::OpSMod: {
      // The result has the sign of the divisor: add the divisor to the remainder if their signs differ.
      llvm::Value *x = integer_operand(i.operands[0], i), *y = integer_operand(i.operands[1], i);
      require(x->getType() == y->getType(), i);
      llvm::Value *r = b_.CreateSRem(x, y), *zero = llvm::Constant::getNullValue(x->getType());
      llvm::Value* differ = b_.CreateAnd(b_.CreateICmpNE(r, zero), b_.CreateICmpSLT(b_.CreateXor(r, y), zero));
      define(i, b_.CreateSelect(differ, b_.CreateAdd(r, y), r));
      return true;
    }
    case Op::OpFMod: {
      llvm::Value *x = floats(0), *y = floats(1);
      require(x->getType() == y->getType(), i);
      llvm::Value *r = b_.CreateFRem(x, y), *zero = llvm::Constant::getNullValue(x->getType());
      llvm::Value* differ =
          b_.CreateAnd(b_.CreateFCmpONE(r, zero), b_.CreateXor(b_.CreateFCmpOLT(r, zero), b_.CreateFCmpOLT(y, zero)));
      define(i, b_.CreateSelect(differ, b_.CreateFAdd(r, y), r));
      return true;
    }
    case Op::OpSelect: {
      llvm::Value *c = operand(0), *x = operand(1), *y = operand(2);
      require(c->getType()->isIntOrIntVectorTy(1) && x->getType() == y->getType() && x->getType()->isFirstClassType(),
              i);
      require(c->getType()->isIntegerTy(1) || same_lanes(c->getType(), x->getType()), i);
      define(i, b_.CreateSelect(c, x, y));
      return true;
    }
    case Op::OpVectorTimesScalar: {
      llvm::Value *x = floats(0), *y = floats(1);
      auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
      require(vector && vector->getElementType() == y->getType(), i);
      define(i, b_.CreateFMul(x, b_.CreateVectorSplat(vector->getNumElements(), y)));
      return true;
    }
    case Op::OpDot: {
      llvm::Value *x = floats(0), *y = floats(1), *sum = nullptr;
      auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
      require(vector && x->getType() == y->getType(), i);
      llvm::Value* products = b_.CreateFMul(x, y);
      for (unsigned k = 0; k < vector->getNumElements(); ++k) {
        llvm::Value* product = b_.CreateExtractElement(products, k);
        sum = sum ? b_.CreateFAdd(sum, product) : product;
      }
      define(i, sum);
      return true;
    }
    case Op::OpIAddCarry:
    case Op::OpISubBorrow: {
      llvm::Value *x = integer_operand(i.operands[0], i), *y = integer_operand(i.operands[1], i);
      auto* pair = llvm::dyn_cast<llvm::StructType>(llvm_type(i.type));
      require(x->getType() == y->getType() && pair && pair->getNumElements() == 2 &&
                  pair->getElementType(0) == x->getType() && pair->getElementType(1) == x->getType(),
              i);
      llvm::Value* both = b_.CreateBinaryIntrinsic(
          opcode == Op::OpIAddCarry ? llvm::Intrinsic::uadd_with_overflow : llvm::Intrinsic::usub_with_overflow, x, y);
      llvm::Value* result = b_.CreateInsertValue(llvm::PoisonValue::get(pair), b_.CreateExtractValue(both, 0), 0);
      define(i, b_.CreateInsertValue(result, b_.CreateZExt(b_.CreateExtractValue(both, 1), x->getType()), 1));
      return true;
    }
    case Op::OpAny:
    case Op::OpAll: {
      llvm::Value* x = operand(0);
      require(x->getType()->isVectorTy() && x->getType()->isIntOrIntVectorTy(1), i);
      define(i, opcode == Op::OpAny ? b_.CreateOrReduce(x) : b_.CreateAndReduce(x));
      return true;
    }
    case Op::OpIsNan: define(i, b_.CreateFCmpUNO(floats(0), operand(0))); return true;
    case Op::OpIsInf:
    case Op::OpIsFinite: {
      llvm::Value* magnitude = b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, floats(0));
      llvm::Value* infinity = llvm::ConstantFP::getInfinity(magnitude->getType());
      define(i, opcode == Op::OpIsInf ? b_.CreateFCmpOEQ(magnitude, infinity) : b_.CreateFCmpOLT(magnitude, infinity));
      return true;
    }
    case Op::OpSignBitSet: {
      llvm::Value* x = floats(0);
      llvm::Type* bits = llvm::Type::getIntNTy(context_, x->getType()->getScalarSizeInBits());
      if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType()))
        bits = llvm::FixedVectorType::get(bits, vector->getNumElements());
      define(i, b_.CreateICmpSLT(b_.CreateBitCast(x, bits), llvm::Constant::getNullValue(bits)));
      return true;
    }
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
      require(operand(0)->getType()->isIntegerTy(1), i);
      b_.CreateAssumption(operand(0));
      return true;
    case Op::OpExpectKHR: define(i, operand(0)); return true;
    default: return false;
  }
}

}  // namespace kiln::spirv
