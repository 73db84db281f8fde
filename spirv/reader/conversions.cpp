// Conversions between types.
#include "spirv/reader/translator.hpp"

namespace kiln::spirv {

using spv::Decoration;
using spv::Op;

bool translator::emit_conversion(const instruction_words& i) {
  auto opcode = static_cast<Op>(i.opcode);
  if (opcode < Op::OpConvertFToU || opcode > Op::OpBitcast) return false;
  llvm::Value* x = value(i.operands[0]);
  llvm::Type *from = x->getType(), *to = llvm_type(i.type);
  require(same_lanes(from, to) || opcode == Op::OpBitcast, i);
  require(!llvm::isa<llvm::Function>(x), i, "its operand is a function");
  bool int_from = from->isIntOrIntVectorTy(), int_to = to->isIntOrIntVectorTy(), fp_from = from->isFPOrFPVectorTy(),
       fp_to = to->isFPOrFPVectorTy(), ptr_from = from->isPointerTy(), ptr_to = to->isPointerTy();
  bool to_integer = opcode == Op::OpConvertFToU || opcode == Op::OpConvertFToS;
  if (!to_integer && find(i.result, Decoration::SaturatedConversion)) refuse("a saturated conversion between integers");
  if (const decoration* d = find(i.result, Decoration::FPRoundingMode);
      d && !to_integer && d->words.at(0) != static_cast<std::uint32_t>(spv::FPRoundingMode::RTE))
    refuse("a conversion to floats that does not round to nearest even");
  switch (opcode) {
    case Op::OpConvertFToU:
    case Op::OpConvertFToS:
      require(fp_from && int_to, i);
      define(i, float_to_integer(x, to, i));
      return true;
    case Op::OpConvertSToF:
      require(int_from && fp_to, i);
      define(i, b_.CreateSIToFP(x, to));
      return true;
    case Op::OpConvertUToF:
      require(int_from && fp_to, i);
      define(i, b_.CreateUIToFP(x, to));
      return true;
    case Op::OpUConvert:
      require(int_from && int_to, i);
      define(i, b_.CreateZExtOrTrunc(x, to));
      return true;
    case Op::OpSConvert:
      require(int_from && int_to, i);
      define(i, b_.CreateSExtOrTrunc(x, to));
      return true;
    case Op::OpFConvert: {
      require(fp_from && fp_to, i);
      unsigned a = from->getScalarSizeInBits(), c = to->getScalarSizeInBits();
      require(a != c || from == to, i, "a conversion between two types of 16 bits");
      define(i, a < c ? b_.CreateFPExt(x, to) : a > c ? b_.CreateFPTrunc(x, to) : x);
      return true;
    }
    case Op::OpConvertPtrToU:
      require(ptr_from && int_to, i);
      define(i, b_.CreatePtrToInt(x, to));
      return true;
    case Op::OpConvertUToPtr:
      require(int_from && ptr_to, i);
      define(i, integer_to_pointer(x, to));
      return true;
    case Op::OpPtrCastToGeneric:
    case Op::OpGenericCastToPtr:
      require(ptr_from && ptr_to, i);
      define(i, in_space_of(x, to));
      return true;
    case Op::OpBitcast: define(i, bit_cast(x, to, i)); return true;
    default: return false;
  }
}

llvm::Value* translator::float_to_integer(llvm::Value* x, llvm::Type* to, const instruction_words& i) {
  const bool sign = static_cast<Op>(i.opcode) == Op::OpConvertFToS;
  llvm::Value* whole = rounded(x, i);
  if (find(i.result, Decoration::SaturatedConversion))
    return b_.CreateIntrinsic(sign ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat, {to, x->getType()},
                              {whole});
  // A value that does not fit gives any integer, but not poison, which would undo later bounds checks.
  return b_.CreateFreeze(sign ? b_.CreateFPToSI(whole, to) : b_.CreateFPToUI(whole, to));
}

llvm::Value* translator::in_space_of(llvm::Value* pointer, llvm::Type* to) {
  return pointer->getType() == to ? pointer : b_.CreateAddrSpaceCast(pointer, to);
}

// If a pointer was converted to an integer and back only to change its address space, the result is the pointer itself.
llvm::Value* translator::integer_to_pointer(llvm::Value* x, llvm::Type* to) {
  if (auto* origin = llvm::dyn_cast<llvm::PtrToIntInst>(x); origin && x->getType()->getIntegerBitWidth() == 64) {
    unsigned had = origin->getPointerAddressSpace(), wanted = to->getPointerAddressSpace();
    const address_spaces& s = options_.spaces;
    if (had == wanted || (wanted == s.generic && (had == s.global || had == s.constant)))
      return in_space_of(origin->getPointerOperand(), to);
  }
  return b_.CreateIntToPtr(x, to);
}

llvm::Value* translator::bit_cast(llvm::Value* x, llvm::Type* to, const instruction_words& i) {
  llvm::Type* from = x->getType();
  if (from->isPointerTy() && to->isPointerTy()) {
    require(from == to, i, "a conversion between storage classes");
    return x;
  }
  if (from->isPointerTy()) {
    require(to->isIntegerTy(), i);
    return b_.CreatePtrToInt(x, to);
  }
  if (to->isPointerTy()) {
    require(from->isIntegerTy(), i);
    return b_.CreateIntToPtr(x, to);
  }
  auto has_bits = [](llvm::Type* t) { return t->isIntOrIntVectorTy() || t->isFPOrFPVectorTy(); };
  require(has_bits(from) && has_bits(to) && from->getPrimitiveSizeInBits() == to->getPrimitiveSizeInBits(), i);
  return b_.CreateBitCast(x, to);
}

// Applies the rounding mode of a conversion to integers. Rounding toward zero needs no extra step.
llvm::Value* translator::rounded(llvm::Value* x, const instruction_words& i) {
  const decoration* d = find(i.result, Decoration::FPRoundingMode);
  switch (d ? static_cast<spv::FPRoundingMode>(d->words.at(0)) : spv::FPRoundingMode::RTZ) {
    case spv::FPRoundingMode::RTE: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x);
    case spv::FPRoundingMode::RTP: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, x);
    case spv::FPRoundingMode::RTN: return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x);
    default: return x;
  }
}

}  // namespace kiln::spirv
