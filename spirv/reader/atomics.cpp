// Atomic operations, fences and barriers. Scopes use amdgcn's names, which the lowering translates.
#include <fmt/format.h>

#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "spirv/reader/translator.hpp"

namespace kiln::spirv {

using llvm::AtomicOrdering;
using llvm::AtomicRMWInst;
using spv::Op;

namespace {

struct update_row {
  Op opcode;
  AtomicRMWInst::BinOp operation;
  bool floating;
};
constexpr update_row updates[] = {
    {Op::OpAtomicExchange, AtomicRMWInst::Xchg, false},  {Op::OpAtomicIAdd, AtomicRMWInst::Add, false},
    {Op::OpAtomicISub, AtomicRMWInst::Sub, false},       {Op::OpAtomicSMin, AtomicRMWInst::Min, false},
    {Op::OpAtomicUMin, AtomicRMWInst::UMin, false},      {Op::OpAtomicSMax, AtomicRMWInst::Max, false},
    {Op::OpAtomicUMax, AtomicRMWInst::UMax, false},      {Op::OpAtomicAnd, AtomicRMWInst::And, false},
    {Op::OpAtomicOr, AtomicRMWInst::Or, false},          {Op::OpAtomicXor, AtomicRMWInst::Xor, false},
    {Op::OpAtomicFAddEXT, AtomicRMWInst::FAdd, true},    {Op::OpAtomicFMinEXT, AtomicRMWInst::FMin, true},
    {Op::OpAtomicFMaxEXT, AtomicRMWInst::FMax, true},    {Op::OpAtomicIIncrement, AtomicRMWInst::Add, false},
    {Op::OpAtomicIDecrement, AtomicRMWInst::Sub, false},
};

// Indexed by spv::Scope: CrossDevice, Device, Workgroup, Subgroup, Invocation.
constexpr const char* scope_names[] = {"", "agent", "workgroup", "wavefront", "singlethread"};

}  // namespace

llvm::SyncScope::ID translator::scope(std::uint32_t id) const {
  std::uint64_t number = integer_constant(id);
  if (number >= std::size(scope_names)) refuse(fmt::format("memory scope {}", number));
  return context_.getOrInsertSyncScopeID(scope_names[number]);
}

AtomicOrdering translator::ordering(std::uint32_t id) const {
  using spv::MemorySemanticsMask;
  std::uint64_t bits = integer_constant(id);
  auto has = [&](MemorySemanticsMask m) { return (bits & static_cast<std::uint64_t>(m)) != 0; };
  if (has(MemorySemanticsMask::SequentiallyConsistent)) return AtomicOrdering::SequentiallyConsistent;
  bool acquire = has(MemorySemanticsMask::Acquire), release = has(MemorySemanticsMask::Release);
  if (has(MemorySemanticsMask::AcquireRelease) || (acquire && release)) return AtomicOrdering::AcquireRelease;
  return acquire ? AtomicOrdering::Acquire : release ? AtomicOrdering::Release : AtomicOrdering::Monotonic;
}

// Operands: pointer, scope, equal, unequal, value, comparator. Returns the value that was there.
llvm::Value* translator::compare_exchange(const instruction_words& i) {
  llvm::Value *at = check_pointer(i.operands[0], i), *desired = value(i.operands[4]), *expected = value(i.operands[5]);
  require(llvm_type(i.type)->isIntegerTy() && desired->getType() == llvm_type(i.type) &&
              expected->getType() == llvm_type(i.type),
          i);
  AtomicOrdering failure = ordering(i.operands[3]);
  if (failure == AtomicOrdering::Release) failure = AtomicOrdering::Monotonic;
  if (failure == AtomicOrdering::AcquireRelease) failure = AtomicOrdering::Acquire;
  llvm::Value* pair = b_.CreateAtomicCmpXchg(at, expected, desired, std::nullopt, ordering(i.operands[2]), failure,
                                             scope(i.operands[1]));
  return b_.CreateExtractValue(pair, 0);
}

// Operands: scope of the execution, scope of the memory, ordering.
void translator::emit_barrier(const instruction_words& i) {
  const bool fences = ordering(i.operands[2]) != AtomicOrdering::Monotonic;
  const llvm::SyncScope::ID where = scope(i.operands[1]);
  const std::uint64_t execution = integer_constant(i.operands[0]);
  const bool workgroup = execution == static_cast<std::uint64_t>(spv::Scope::Workgroup);
  if (!workgroup && execution != static_cast<std::uint64_t>(spv::Scope::Subgroup))
    refuse(fmt::format("a barrier of scope {}", execution));
  if (fences) b_.CreateFence(AtomicOrdering::Release, where);
  call(workgroup ? llvm::Intrinsic::amdgcn_s_barrier : llvm::Intrinsic::amdgcn_wave_barrier, {}, {});
  if (fences) b_.CreateFence(AtomicOrdering::Acquire, where);
}

bool translator::emit_atomic(const instruction_words& i) {
  auto opcode = static_cast<Op>(i.opcode);
  auto can_be_atomic = [&](llvm::Type* t) {
    unsigned bits = t->isIntegerTy() || t->isFloatingPointTy() ? static_cast<unsigned>(t->getPrimitiveSizeInBits()) : 0;
    require(bits == 8 || bits == 16 || bits == 32 || bits == 64, i, "atomic operations do not support this type");
  };
  for (const update_row& row : updates)
    if (row.opcode == opcode) {
      llvm::Value* at = check_pointer(i.operands[0], i);
      bool counts = opcode == Op::OpAtomicIIncrement || opcode == Op::OpAtomicIDecrement;
      can_be_atomic(llvm_type(i.type));
      bool integer = llvm_type(i.type)->isIntegerTy();
      require(row.operation == AtomicRMWInst::Xchg || integer != row.floating, i);
      llvm::Value* operand = counts ? llvm::ConstantInt::get(llvm_type(i.type), 1) : value(i.operands[3]);
      require(operand->getType() == llvm_type(i.type), i);
      define(i, b_.CreateAtomicRMW(row.operation, at, operand, std::nullopt, ordering(i.operands[2]),
                                   scope(i.operands[1])));
      return true;
    }
  switch (opcode) {
    case Op::OpAtomicLoad: {
      can_be_atomic(llvm_type(i.type));
      AtomicOrdering order = ordering(i.operands[2]);
      require(order != AtomicOrdering::Release && order != AtomicOrdering::AcquireRelease, i,
              "a load cannot have release order");
      llvm::LoadInst* load = b_.CreateAlignedLoad(llvm_type(i.type), check_pointer(i.operands[0], i),
                                                  llvm::Align(llvm_type(i.type)->getPrimitiveSizeInBits() / 8));
      load->setAtomic(order, scope(i.operands[1]));
      define(i, load);
      return true;
    }
    case Op::OpAtomicStore: {
      llvm::Value* v = value(i.operands[3]);
      can_be_atomic(v->getType());
      AtomicOrdering order = ordering(i.operands[2]);
      require(order != AtomicOrdering::Acquire && order != AtomicOrdering::AcquireRelease, i,
              "a store cannot have acquire order");
      llvm::StoreInst* store = b_.CreateAlignedStore(v, check_pointer(i.operands[0], i),
                                                     llvm::Align(v->getType()->getPrimitiveSizeInBits() / 8));
      store->setAtomic(order, scope(i.operands[1]));
      return true;
    }
    case Op::OpAtomicCompareExchange:
    case Op::OpAtomicCompareExchangeWeak: {
      can_be_atomic(llvm_type(i.type));
      define(i, compare_exchange(i));
      return true;
    }
    case Op::OpMemoryBarrier:
      if (AtomicOrdering order = ordering(i.operands[1]); order != AtomicOrdering::Monotonic)
        b_.CreateFence(order, scope(i.operands[0]));
      return true;
    case Op::OpControlBarrier: emit_barrier(i); return true;
    default: return false;
  }
}

}  // namespace kiln::spirv
