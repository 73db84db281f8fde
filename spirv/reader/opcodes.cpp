#include "spirv/reader/opcodes.hpp"

#include <algorithm>
#include <array>

namespace kiln::spirv {
namespace {

constexpr auto sorted(auto list) {
  std::ranges::sort(list);
  return list;
}

using enum spv::Op;
constexpr auto known = sorted(std::array{
    // names, debug information and decorations
    OpNop, OpSource, OpSourceExtension, OpSourceContinued, OpName, OpMemberName, OpString, OpLine, OpNoLine,
    OpModuleProcessed, OpExtension, OpExtInstImport, OpExtInst, OpMemoryModel, OpEntryPoint, OpExecutionMode,
    OpExecutionModeId, OpCapability, OpDecorate, OpMemberDecorate, OpDecorateId,
    // types and constants
    OpTypeVoid, OpTypeBool, OpTypeInt, OpTypeFloat, OpTypeVector, OpTypeArray, OpTypeStruct, OpTypePointer,
    OpTypeFunction, OpTypeForwardPointer, OpConstantTrue, OpConstantFalse, OpConstant, OpConstantComposite,
    OpConstantNull, OpSpecConstantTrue, OpSpecConstantFalse, OpSpecConstant, OpSpecConstantComposite, OpSpecConstantOp,
    OpUndef,
    // functions and control flow
    OpFunction, OpFunctionParameter, OpFunctionEnd, OpFunctionCall, OpPhi, OpLoopMerge, OpSelectionMerge, OpLabel,
    OpBranch, OpBranchConditional, OpSwitch, OpReturn, OpReturnValue, OpUnreachable, OpLifetimeStart, OpLifetimeStop,
    // memory
    OpVariable, OpLoad, OpStore, OpCopyMemory, OpCopyMemorySized, OpAccessChain, OpInBoundsAccessChain,
    OpPtrAccessChain, OpInBoundsPtrAccessChain, OpPtrEqual, OpPtrNotEqual, OpPtrDiff,
    // vectors and aggregates
    OpVectorExtractDynamic, OpVectorInsertDynamic, OpVectorShuffle, OpCompositeConstruct, OpCompositeExtract,
    OpCompositeInsert, OpCopyObject,
    // conversions
    OpConvertFToU, OpConvertFToS, OpConvertSToF, OpConvertUToF, OpUConvert, OpSConvert, OpFConvert, OpConvertPtrToU,
    OpConvertUToPtr, OpPtrCastToGeneric, OpGenericCastToPtr, OpGenericCastToPtrExplicit, OpBitcast,
    // arithmetic
    OpSNegate, OpFNegate, OpIAdd, OpFAdd, OpISub, OpFSub, OpIMul, OpFMul, OpUDiv, OpSDiv, OpFDiv, OpUMod, OpSRem,
    OpSMod, OpFRem, OpFMod, OpVectorTimesScalar, OpDot, OpIAddCarry, OpISubBorrow, OpAny, OpAll, OpIsNan, OpIsInf,
    OpIsFinite, OpSignBitSet, OpLessOrGreater, OpOrdered, OpUnordered, OpLogicalEqual, OpLogicalNotEqual, OpLogicalOr,
    OpLogicalAnd, OpLogicalNot, OpSelect, OpIEqual, OpINotEqual, OpUGreaterThan, OpSGreaterThan, OpUGreaterThanEqual,
    OpSGreaterThanEqual, OpULessThan, OpSLessThan, OpULessThanEqual, OpSLessThanEqual, OpFOrdEqual, OpFUnordEqual,
    OpFOrdNotEqual, OpFUnordNotEqual, OpFOrdLessThan, OpFUnordLessThan, OpFOrdGreaterThan, OpFUnordGreaterThan,
    OpFOrdLessThanEqual, OpFUnordLessThanEqual, OpFOrdGreaterThanEqual, OpFUnordGreaterThanEqual, OpShiftRightLogical,
    OpShiftRightArithmetic, OpShiftLeftLogical, OpBitwiseOr, OpBitwiseXor, OpBitwiseAnd, OpNot, OpBitReverse,
    OpBitCount,
    // atomics and barriers
    OpControlBarrier, OpMemoryBarrier, OpAtomicLoad, OpAtomicStore, OpAtomicExchange, OpAtomicCompareExchange,
    OpAtomicCompareExchangeWeak, OpAtomicIIncrement, OpAtomicIDecrement, OpAtomicIAdd, OpAtomicISub, OpAtomicSMin,
    OpAtomicUMin, OpAtomicSMax, OpAtomicUMax, OpAtomicAnd, OpAtomicOr, OpAtomicXor, OpAtomicFAddEXT, OpAtomicFMinEXT,
    OpAtomicFMaxEXT,
    // subgroups
    OpGroupNonUniformElect, OpGroupNonUniformAll, OpGroupNonUniformAny, OpGroupNonUniformBroadcast,
    OpGroupNonUniformBroadcastFirst, OpGroupNonUniformBallot, OpGroupNonUniformShuffle, OpGroupNonUniformShuffleXor,
    OpGroupNonUniformShuffleUp, OpGroupNonUniformShuffleDown,
    // hints
    OpAssumeTrueKHR, OpExpectKHR});

}  // namespace

bool is_known(spv::Op opcode) { return std::ranges::binary_search(known, opcode); }

}  // namespace kiln::spirv
