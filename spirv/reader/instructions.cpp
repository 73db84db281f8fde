// Arithmetic, conversions, memory and composites. What differs only in an opcode is a row of a table.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/error.hpp"
#include "spirv/reader/translator.hpp"

namespace kiln::spirv {

using llvm::CmpInst;
using llvm::Instruction;
using llvm::Intrinsic::ID;
using spv::Decoration;
using spv::Op;

namespace {

struct binary_row {
  Op opcode;
  Instruction::BinaryOps operation;
};
constexpr binary_row binaries[] = {
    {Op::OpIAdd, Instruction::Add}, {Op::OpISub, Instruction::Sub}, {Op::OpIMul, Instruction::Mul}, {Op::OpUDiv, Instruction::UDiv}, {Op::OpSDiv, Instruction::SDiv}, {Op::OpUMod, Instruction::URem},
    {Op::OpSRem, Instruction::SRem}, {Op::OpFAdd, Instruction::FAdd}, {Op::OpFSub, Instruction::FSub}, {Op::OpFMul, Instruction::FMul}, {Op::OpFDiv, Instruction::FDiv}, {Op::OpFRem, Instruction::FRem},
    {Op::OpShiftLeftLogical, Instruction::Shl}, {Op::OpShiftRightLogical, Instruction::LShr}, {Op::OpShiftRightArithmetic, Instruction::AShr}, {Op::OpBitwiseAnd, Instruction::And},
    {Op::OpBitwiseOr, Instruction::Or}, {Op::OpBitwiseXor, Instruction::Xor}, {Op::OpLogicalAnd, Instruction::And}, {Op::OpLogicalOr, Instruction::Or}, {Op::OpLogicalNotEqual, Instruction::Xor},
};

struct compare_row {
  Op opcode;
  CmpInst::Predicate predicate;
};
constexpr compare_row compares[] = {
    {Op::OpIEqual, CmpInst::ICMP_EQ}, {Op::OpINotEqual, CmpInst::ICMP_NE}, {Op::OpUGreaterThan, CmpInst::ICMP_UGT}, {Op::OpSGreaterThan, CmpInst::ICMP_SGT},
    {Op::OpUGreaterThanEqual, CmpInst::ICMP_UGE}, {Op::OpSGreaterThanEqual, CmpInst::ICMP_SGE}, {Op::OpULessThan, CmpInst::ICMP_ULT}, {Op::OpSLessThan, CmpInst::ICMP_SLT},
    {Op::OpULessThanEqual, CmpInst::ICMP_ULE}, {Op::OpSLessThanEqual, CmpInst::ICMP_SLE}, {Op::OpLogicalEqual, CmpInst::ICMP_EQ}, {Op::OpPtrEqual, CmpInst::ICMP_EQ}, {Op::OpPtrNotEqual, CmpInst::ICMP_NE},
    {Op::OpFOrdEqual, CmpInst::FCMP_OEQ}, {Op::OpFUnordEqual, CmpInst::FCMP_UEQ}, {Op::OpFOrdNotEqual, CmpInst::FCMP_ONE}, {Op::OpFUnordNotEqual, CmpInst::FCMP_UNE},
    {Op::OpFOrdLessThan, CmpInst::FCMP_OLT}, {Op::OpFUnordLessThan, CmpInst::FCMP_ULT}, {Op::OpFOrdGreaterThan, CmpInst::FCMP_OGT}, {Op::OpFUnordGreaterThan, CmpInst::FCMP_UGT},
    {Op::OpFOrdLessThanEqual, CmpInst::FCMP_OLE}, {Op::OpFUnordLessThanEqual, CmpInst::FCMP_ULE}, {Op::OpFOrdGreaterThanEqual, CmpInst::FCMP_OGE}, {Op::OpFUnordGreaterThanEqual, CmpInst::FCMP_UGE},
    {Op::OpLessOrGreater, CmpInst::FCMP_ONE}, {Op::OpOrdered, CmpInst::FCMP_ORD}, {Op::OpUnordered, CmpInst::FCMP_UNO},
};

struct flag_row {
  std::uint32_t bit;  // of decoration FPFastMathMode
  void (llvm::FastMathFlags::*set)(bool);
};
constexpr flag_row fast_math_flags[] = {
    {0x1, &llvm::FastMathFlags::setNoNaNs}, {0x2, &llvm::FastMathFlags::setNoInfs}, {0x4, &llvm::FastMathFlags::setNoSignedZeros}, {0x8, &llvm::FastMathFlags::setAllowReciprocal},
    {0x10, &llvm::FastMathFlags::setFast}, {0x20000, &llvm::FastMathFlags::setAllowReassoc},
};

template <class Row, std::size_t N>
const Row* row_of(const Row (&rows)[N], Op opcode) {
  for (const Row& row : rows)
    if (row.opcode == opcode) return &row;
  return nullptr;
}

bool same_lanes(llvm::Type* a, llvm::Type* b) {
  auto *x = llvm::dyn_cast<llvm::FixedVectorType>(a), *y = llvm::dyn_cast<llvm::FixedVectorType>(b);
  return x && y ? x->getNumElements() == y->getNumElements() : !x && !y;
}

}  // namespace

llvm::Value* translator::integer_operand(std::uint32_t id, const instruction_words& i) const {
  llvm::Value* v = value(id);
  require(v->getType()->isIntOrIntVectorTy(), i, "an operand is no integer");
  return v;
}

llvm::Value* translator::check_pointer(std::uint32_t id, const instruction_words& i) const {
  llvm::Value* v = value(id);
  require(v->getType()->isPointerTy() && !llvm::isa<llvm::Function>(v), i, "an operand is no pointer to data");
  return v;
}

void translator::emit(const instruction_words& i) {
  switch (static_cast<Op>(i.opcode)) {
    case Op::OpPhi: case Op::OpBranch: case Op::OpBranchConditional: case Op::OpSwitch: case Op::OpReturn: case Op::OpReturnValue: case Op::OpUnreachable: case Op::OpVariable: case Op::OpFunctionCall:
    case Op::OpLoopMerge: case Op::OpSelectionMerge: case Op::OpLine: case Op::OpNoLine: case Op::OpNop: case Op::OpLifetimeStart: case Op::OpLifetimeStop:
      emit_control(i);
      return;
    case Op::OpUndef: declare_constant(i); return;
    default: break;
  }
  if (!(emit_arithmetic(i) || emit_conversion(i) || emit_memory(i) || emit_composite(i) || emit_atomic(i) || emit_group(i) || emit_extended(i))) refuse(opcode_name(i.opcode) + " inside of a function");
}

bool translator::emit_arithmetic(const instruction_words& i) {
  auto opcode = static_cast<Op>(i.opcode);
  // Nothing is contracted here: what a source wants fused arrives as fma or fmuladd (spirv/README.md).
  llvm::FastMathFlags flags;
  if (const decoration* d = i.result ? find(i.result, Decoration::FPFastMathMode) : nullptr; d && !d->words.empty())
    for (const flag_row& row : fast_math_flags)
      if (d->words[0] & row.bit) (flags.*row.set)(true);
  b_.setFastMathFlags(flags);

  auto operand = [&](std::size_t k) { return value(i.operands[k]); };
  auto floats = [&](std::size_t k) {
    llvm::Value* v = operand(k);
    require(v->getType()->isFPOrFPVectorTy(), i, "an operand is no float");
    return v;
  };
  if (const binary_row* row = row_of(binaries, opcode)) {
    llvm::Value *x = operand(0), *y = operand(1);
    llvm::Type* t = llvm_type(i.type);
    bool floating = row->operation == Instruction::FAdd || row->operation == Instruction::FSub || row->operation == Instruction::FMul || row->operation == Instruction::FDiv || row->operation == Instruction::FRem;
    require(x->getType() == t && (floating ? t->isFPOrFPVectorTy() : t->isIntOrIntVectorTy()), i);
    bool shift = Instruction::isShift(row->operation);
    if (shift) {
      require(y->getType()->isIntOrIntVectorTy() && same_lanes(t, y->getType()), i);
      y = b_.CreateZExtOrTrunc(y, t);
    }
    require(y->getType() == t, i);
    llvm::Value* result = b_.CreateBinOp(row->operation, x, y);
    if (auto* instruction = llvm::dyn_cast<llvm::OverflowingBinaryOperator>(result); instruction && llvm::isa<Instruction>(result)) {
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
    require(CmpInst::isFPPredicate(row->predicate) ? x->getType()->isFPOrFPVectorTy() : pointers ? x->getType()->isPointerTy() : x->getType()->isIntOrIntVectorTy() || x->getType()->isPtrOrPtrVectorTy(), i);
    define(i, b_.CreateCmp(row->predicate, x, y));
    return true;
  }
  switch (opcode) {
    case Op::OpSNegate: define(i, b_.CreateNeg(integer_operand(i.operands[0], i))); return true;
    case Op::OpNot:
    case Op::OpLogicalNot: define(i, b_.CreateNot(integer_operand(i.operands[0], i))); return true;
    case Op::OpFNegate: define(i, b_.CreateFNeg(floats(0))); return true;
    case Op::OpSMod: {
      // The sign of the divisor: the remainder, plus the divisor where their signs differ.
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
      llvm::Value* differ = b_.CreateAnd(b_.CreateFCmpONE(r, zero), b_.CreateXor(b_.CreateFCmpOLT(r, zero), b_.CreateFCmpOLT(y, zero)));
      define(i, b_.CreateSelect(differ, b_.CreateFAdd(r, y), r));
      return true;
    }
    case Op::OpSelect: {
      llvm::Value *c = operand(0), *x = operand(1), *y = operand(2);
      require(c->getType()->isIntOrIntVectorTy(1) && x->getType() == y->getType() && x->getType()->isFirstClassType(), i);
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
      require(x->getType() == y->getType() && pair && pair->getNumElements() == 2 && pair->getElementType(0) == x->getType() && pair->getElementType(1) == x->getType(), i);
      llvm::Value* both = b_.CreateBinaryIntrinsic(opcode == Op::OpIAddCarry ? llvm::Intrinsic::uadd_with_overflow : llvm::Intrinsic::usub_with_overflow, x, y);
      llvm::Value* result = b_.CreateInsertValue(llvm::PoisonValue::get(pair), b_.CreateExtractValue(both, 0), 0);
      define(i, b_.CreateInsertValue(result, b_.CreateZExt(b_.CreateExtractValue(both, 1), x->getType()), 1));
      return true;
    }
    case Op::OpAny: case Op::OpAll: {
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
      llvm::Type* bits = x->getType()->getWithNewBitWidth(x->getType()->getScalarSizeInBits());
      if (!bits->isIntOrIntVectorTy()) bits = llvm::Type::getIntNTy(context_, x->getType()->getScalarSizeInBits());
      if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType()); vector && !bits->isVectorTy()) bits = llvm::FixedVectorType::get(bits, vector->getNumElements());
      define(i, b_.CreateICmpSLT(b_.CreateBitCast(x, bits), llvm::Constant::getNullValue(bits)));
      return true;
    }
    case Op::OpBitReverse: define(i, b_.CreateUnaryIntrinsic(llvm::Intrinsic::bitreverse, integer_operand(i.operands[0], i))); return true;
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

bool translator::emit_conversion(const instruction_words& i) {
  auto opcode = static_cast<Op>(i.opcode);
  if (opcode < Op::OpConvertFToU || opcode > Op::OpBitcast) return false;
  llvm::Value* x = value(i.operands[0]);
  llvm::Type *from = x->getType(), *to = llvm_type(i.type);
  require(same_lanes(from, to) || opcode == Op::OpBitcast, i);
  require(!llvm::isa<llvm::Function>(x), i, "its operand is a function");
  bool int_from = from->isIntOrIntVectorTy(), int_to = to->isIntOrIntVectorTy(), fp_from = from->isFPOrFPVectorTy(), fp_to = to->isFPOrFPVectorTy(), ptr_from = from->isPointerTy(), ptr_to = to->isPointerTy();
  auto space_cast = [&](llvm::Value* pointer) { return pointer->getType() == to ? pointer : b_.CreateAddrSpaceCast(pointer, to); };
  switch (opcode) {
    case Op::OpConvertFToU: require(fp_from && int_to, i); define(i, b_.CreateFPToUI(x, to)); return true;
    case Op::OpConvertFToS: require(fp_from && int_to, i); define(i, b_.CreateFPToSI(x, to)); return true;
    case Op::OpConvertSToF: require(int_from && fp_to, i); define(i, b_.CreateSIToFP(x, to)); return true;
    case Op::OpConvertUToF: require(int_from && fp_to, i); define(i, b_.CreateUIToFP(x, to)); return true;
    case Op::OpUConvert: require(int_from && int_to, i); define(i, b_.CreateZExtOrTrunc(x, to)); return true;
    case Op::OpSConvert: require(int_from && int_to, i); define(i, b_.CreateSExtOrTrunc(x, to)); return true;
    case Op::OpFConvert: {
      require(fp_from && fp_to, i);
      unsigned a = from->getScalarSizeInBits(), c = to->getScalarSizeInBits();
      require(a != c || from == to, i, "from one type of 16 bits to another");
      define(i, a < c ? b_.CreateFPExt(x, to) : a > c ? b_.CreateFPTrunc(x, to) : x);
      return true;
    }
    case Op::OpConvertPtrToU: require(ptr_from && int_to, i); define(i, b_.CreatePtrToInt(x, to)); return true;
    case Op::OpConvertUToPtr:
      require(int_from && ptr_to, i);
      // A pointer that went through an integer only to change its address space.
      if (auto* origin = llvm::dyn_cast<llvm::PtrToIntInst>(x); origin && from->getIntegerBitWidth() == 64) {
        unsigned had = origin->getPointerAddressSpace(), wanted = to->getPointerAddressSpace();
        const address_spaces& s = options_.spaces;
        if (had == wanted || (wanted == s.generic && (had == s.global || had == s.constant))) {
          define(i, space_cast(origin->getPointerOperand()));
          return true;
        }
      }
      define(i, b_.CreateIntToPtr(x, to));
      return true;
    case Op::OpPtrCastToGeneric:
    case Op::OpGenericCastToPtr: require(ptr_from && ptr_to, i); define(i, space_cast(x)); return true;
    case Op::OpBitcast:
      if (ptr_from && ptr_to) {
        require(from == to, i, "between storage classes");
        define(i, x);
      } else if (ptr_from) {
        require(to->isIntegerTy(), i);
        define(i, b_.CreatePtrToInt(x, to));
      } else if (ptr_to) {
        require(from->isIntegerTy(), i);
        define(i, b_.CreateIntToPtr(x, to));
      } else {
        require((int_from || fp_from) && (int_to || fp_to) && from->getPrimitiveSizeInBits() == to->getPrimitiveSizeInBits(), i);
        define(i, b_.CreateBitCast(x, to));
      }
      return true;
    default: return false;
  }
}

namespace {

struct memory_operands {
  bool is_volatile = false;
  llvm::MaybeAlign alignment;
};

}  // namespace

bool translator::emit_memory(const instruction_words& i) {
  auto opcode = static_cast<Op>(i.opcode);
  auto operands_from = [&](std::size_t at) {
    memory_operands result;
    if (at >= i.operands.size()) return result;
    std::uint32_t mask = i.operands[at];
    result.is_volatile = mask & static_cast<std::uint32_t>(spv::MemoryAccessMask::Volatile);
    if (mask & static_cast<std::uint32_t>(spv::MemoryAccessMask::Aligned)) {
      std::uint32_t bytes = at + 1 < i.operands.size() ? i.operands[at + 1] : 0;
      require(llvm::isPowerOf2_32(bytes) && bytes <= 4096, i, "an impossible alignment");
      result.alignment = llvm::Align(bytes);
    }
    return result;
  };
  auto can_hold = [&](llvm::Type* t) { require(t->isSized() && t->isFirstClassType(), i, "memory does not hold this type"); };
  switch (opcode) {
    case Op::OpLoad: {
      llvm::Value* from = check_pointer(i.operands[0], i);
      can_hold(llvm_type(i.type));
      memory_operands m = operands_from(1);
      define(i, b_.CreateAlignedLoad(llvm_type(i.type), from, m.alignment, m.is_volatile));
      return true;
    }
    case Op::OpStore: {
      llvm::Value* to = check_pointer(i.operands[0], i);
      llvm::Value* v = value(i.operands[1]);
      can_hold(v->getType());
      memory_operands m = operands_from(2);
      b_.CreateAlignedStore(v, to, m.alignment, m.is_volatile);
      return true;
    }
    case Op::OpCopyMemory:
    case Op::OpCopyMemorySized: {
      llvm::Value *to = check_pointer(i.operands[0], i), *from = check_pointer(i.operands[1], i), *size;
      bool sized = opcode == Op::OpCopyMemorySized;
      memory_operands m = operands_from(sized ? 3 : 2);
      if (sized) {
        size = integer_operand(i.operands[2], i);
        require(size->getType()->isIntegerTy() && size->getType()->getIntegerBitWidth() <= 64, i);
      } else {
        const type_info& pointer = type(type_of(i.operands[0]));
        require(pointer.element && llvm_type(pointer.element)->isSized(), i);
        size = b_.getInt64(module_.getDataLayout().getTypeStoreSize(llvm_type(pointer.element)));
      }
      b_.CreateMemCpy(to, m.alignment, from, m.alignment, size, m.is_volatile);
      return true;
    }
    case Op::OpAccessChain: case Op::OpInBoundsAccessChain: case Op::OpPtrAccessChain: case Op::OpInBoundsPtrAccessChain: emit_access_chain(i); return true;
    case Op::OpPtrDiff: {
      const type_info& pointer = type(type_of(i.operands[0]));
      llvm::Value *x = check_pointer(i.operands[0], i), *y = check_pointer(i.operands[1], i);
      require(x->getType() == y->getType() && llvm_type(i.type)->isIntegerTy() && pointer.element && llvm_type(pointer.element)->isSized(), i);
      std::uint64_t bytes = module_.getDataLayout().getTypeAllocSize(llvm_type(pointer.element));
      require(bytes != 0, i);
      llvm::Value* difference = b_.CreateSub(b_.CreatePtrToInt(x, b_.getInt64Ty()), b_.CreatePtrToInt(y, b_.getInt64Ty()));
      define(i, b_.CreateSExtOrTrunc(b_.CreateExactSDiv(difference, b_.getInt64(bytes)), llvm_type(i.type)));
      return true;
    }
    default: return false;
  }
}

void translator::emit_access_chain(const instruction_words& i) {
  auto opcode = static_cast<Op>(i.opcode);
  bool over_elements = opcode == Op::OpPtrAccessChain || opcode == Op::OpInBoundsPtrAccessChain, in_bounds = opcode == Op::OpInBoundsAccessChain || opcode == Op::OpInBoundsPtrAccessChain;
  llvm::Value* base = check_pointer(i.operands[0], i);
  const type_info& pointer = type(type_of(i.operands[0]));
  require(pointer.kind == Op::OpTypePointer && pointer.element, i, "its base is no pointer");
  auto index = [&](std::uint32_t id) {
    llvm::Value* v = integer_operand(id, i);
    require(v->getType()->isIntegerTy() && v->getType()->getIntegerBitWidth() <= 64, i);
    return v;
  };
  std::vector<llvm::Value*> indices;
  words rest = i.operands.subspan(1);
  if (over_elements) {
    require(!rest.empty(), i);
    indices.push_back(index(rest[0]));
    rest = rest.subspan(1);
  } else {
    indices.push_back(b_.getInt32(0));
  }
  llvm::Type* source = llvm_type(pointer.element);
  require(source->isSized() && !source->isVoidTy(), i);
  const type_info* at = &type(pointer.element);
  for (std::uint32_t id : rest) {
    if (at->kind == Op::OpTypeStruct) {
      std::uint64_t member = integer_constant(id);
      require(member < at->members.size(), i, "a struct does not have that member");
      indices.push_back(b_.getInt32(static_cast<std::uint32_t>(member)));
      at = &type(at->members[member]);
    } else {
      require(at->kind == Op::OpTypeArray || at->kind == Op::OpTypeVector, i, "it goes into what has no parts");
      require(!(at->kind == Op::OpTypeVector && at->type->getScalarSizeInBits() % 8), i);
      indices.push_back(index(id));
      at = &type(at->element);
    }
  }
  define(i, b_.CreateGEP(source, base, indices, "", in_bounds ? llvm::GEPNoWrapFlags::inBounds() : llvm::GEPNoWrapFlags::none()));
}

bool translator::emit_composite(const instruction_words& i) {
  auto opcode = static_cast<Op>(i.opcode);
  // The type inside of `t` at the literal indices.
  auto inside = [&](llvm::Type* t, words path) {
    for (std::uint32_t k : path) {
      if (auto* record = llvm::dyn_cast<llvm::StructType>(t)) {
        require(k < record->getNumElements(), i, "an index out of range");
        t = record->getElementType(k);
      } else if (auto* array = llvm::dyn_cast<llvm::ArrayType>(t)) {
        require(k < array->getNumElements(), i, "an index out of range");
        t = array->getElementType();
      } else {
        auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(t);
        require(vector && k < vector->getNumElements(), i, "an index out of range");
        t = vector->getElementType();
      }
    }
    return t;
  };
  // The last index of a path into a vector is an element of that vector.
  auto ends_in_vector = [&](llvm::Type* t, words path) { return !path.empty() && inside(t, path.first(path.size() - 1))->isVectorTy(); };
  auto extract = [&](llvm::Value* v, words path) -> llvm::Value* { return path.empty() ? v : b_.CreateExtractValue(v, path); };
  switch (opcode) {
    case Op::OpCopyObject: define(i, value(i.operands[0])); return true;
    case Op::OpCompositeExtract: {
      llvm::Value* whole = value(i.operands[0]);
      words path = i.operands.subspan(1);
      require(inside(whole->getType(), path) == llvm_type(i.type), i);
      define(i, ends_in_vector(whole->getType(), path) ? b_.CreateExtractElement(extract(whole, path.first(path.size() - 1)), path.back()) : extract(whole, path));
      return true;
    }
    case Op::OpCompositeInsert: {
      llvm::Value *part = value(i.operands[0]), *whole = value(i.operands[1]);
      words path = i.operands.subspan(2);
      require(inside(whole->getType(), path) == part->getType(), i);
      if (path.empty()) {
        define(i, part);
      } else if (ends_in_vector(whole->getType(), path)) {
        words before = path.first(path.size() - 1);
        llvm::Value* vector = b_.CreateInsertElement(extract(whole, before), part, path.back());
        define(i, before.empty() ? vector : b_.CreateInsertValue(whole, vector, before));
      } else {
        define(i, b_.CreateInsertValue(whole, part, path));
      }
      return true;
    }
    case Op::OpCompositeConstruct: {
      llvm::Type* t = llvm_type(i.type);
      llvm::Value* result = llvm::PoisonValue::get(t);
      unsigned at = 0;
      if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(t)) {
        auto add = [&](llvm::Value* v) {
          require(at < vector->getNumElements() && v->getType() == vector->getElementType(), i);
          result = b_.CreateInsertElement(result, v, at++);
        };
        for (std::uint32_t id : i.operands) {
          llvm::Value* part = value(id);
          if (auto* several = llvm::dyn_cast<llvm::FixedVectorType>(part->getType()))
            for (unsigned k = 0; k < several->getNumElements(); ++k) add(b_.CreateExtractElement(part, k));
          else add(part);
        }
        require(at == vector->getNumElements(), i, "it has another number of parts");
      } else {
        require(t->isAggregateType(), i);
        for (std::uint32_t id : i.operands) {
          require(inside(t, std::array{at}) == value(id)->getType(), i);
          result = b_.CreateInsertValue(result, value(id), at++);
        }
        require(at == (t->isStructTy() ? t->getStructNumElements() : t->getArrayNumElements()), i, "it has another number of parts");
      }
      define(i, result);
      return true;
    }
    case Op::OpVectorShuffle: {
      llvm::Value *x = value(i.operands[0]), *y = value(i.operands[1]);
      auto *a = llvm::dyn_cast<llvm::FixedVectorType>(x->getType()), *c = llvm::dyn_cast<llvm::FixedVectorType>(y->getType());
      require(a && c && a->getElementType() == c->getElementType(), i);
      unsigned m = a->getNumElements(), n = c->getNumElements(), widest = std::max(m, n);
      auto widen = [&](llvm::Value* v, unsigned has) {
        std::vector<int> lanes(widest, -1);
        for (unsigned k = 0; k < has; ++k) lanes[k] = static_cast<int>(k);
        return has == widest ? v : b_.CreateShuffleVector(v, lanes);
      };
      std::vector<int> lanes;
      for (std::uint32_t k : i.operands.subspan(2)) {
        require(k == 0xffffffff || k < m + n, i, "an index out of range");
        lanes.push_back(k == 0xffffffff ? -1 : static_cast<int>(k < m ? k : k - m + widest));
      }
      require(!lanes.empty() && lanes.size() <= 64, i);
      define(i, b_.CreateShuffleVector(widen(x, m), widen(y, n), lanes));
      return true;
    }
    case Op::OpVectorExtractDynamic:
    case Op::OpVectorInsertDynamic: {
      llvm::Value* vector = value(i.operands[0]);
      auto* t = llvm::dyn_cast<llvm::FixedVectorType>(vector->getType());
      require(t != nullptr, i);
      bool insert = opcode == Op::OpVectorInsertDynamic;
      llvm::Value* index = integer_operand(i.operands[insert ? 2 : 1], i);
      require(index->getType()->isIntegerTy() && index->getType()->getIntegerBitWidth() <= 64, i);
      if (insert) require(value(i.operands[1])->getType() == t->getElementType(), i);
      define(i, insert ? b_.CreateInsertElement(vector, value(i.operands[1]), index) : b_.CreateExtractElement(vector, index));
      return true;
    }
    default: return false;
  }
}

}  // namespace kiln::spirv
