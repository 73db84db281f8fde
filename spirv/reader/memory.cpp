// Loads, stores, copies and address computations.
#include "spirv/reader/translator.hpp"

namespace kiln::spirv {

using spv::Op;

llvm::Value* translator::check_pointer(std::uint32_t id, const instruction_words& i) const {
  llvm::Value* v = value(id);
  require(v->getType()->isPointerTy() && !llvm::isa<llvm::Function>(v), i, "an operand is not a pointer to data");
  return v;
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
      require(llvm::isPowerOf2_32(bytes) && bytes <= 4096, i, "an invalid alignment");
      result.alignment = llvm::Align(bytes);
    }
    return result;
  };
  auto can_hold = [&](llvm::Type* t) {
    require(t->isSized() && t->isFirstClassType(), i, "this type cannot be loaded or stored");
  };
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
    case Op::OpAccessChain:
    case Op::OpInBoundsAccessChain:
    case Op::OpPtrAccessChain:
    case Op::OpInBoundsPtrAccessChain: emit_access_chain(i); return true;
    case Op::OpPtrDiff: {
      const type_info& pointer = type(type_of(i.operands[0]));
      llvm::Value *x = check_pointer(i.operands[0], i), *y = check_pointer(i.operands[1], i);
      require(x->getType() == y->getType() && llvm_type(i.type)->isIntegerTy() && pointer.element &&
                  llvm_type(pointer.element)->isSized(),
              i);
      std::uint64_t bytes = module_.getDataLayout().getTypeAllocSize(llvm_type(pointer.element));
      require(bytes != 0, i);
      llvm::Value* difference =
          b_.CreateSub(b_.CreatePtrToInt(x, b_.getInt64Ty()), b_.CreatePtrToInt(y, b_.getInt64Ty()));
      define(i, b_.CreateSExtOrTrunc(b_.CreateExactSDiv(difference, b_.getInt64(bytes)), llvm_type(i.type)));
      return true;
    }
    default: return false;
  }
}

void translator::emit_access_chain(const instruction_words& i) {
  auto opcode = static_cast<Op>(i.opcode);
  bool over_elements = opcode == Op::OpPtrAccessChain || opcode == Op::OpInBoundsPtrAccessChain,
       in_bounds = opcode == Op::OpInBoundsAccessChain || opcode == Op::OpInBoundsPtrAccessChain;
  llvm::Value* base = check_pointer(i.operands[0], i);
  const type_info& pointer = type(type_of(i.operands[0]));
  require(pointer.kind == Op::OpTypePointer && pointer.element, i, "its base is not a pointer");
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
      require(at->kind == Op::OpTypeArray || at->kind == Op::OpTypeVector, i, "it indexes a type without elements");
      require(!(at->kind == Op::OpTypeVector && at->type->getScalarSizeInBits() % 8), i);
      indices.push_back(index(id));
      at = &type(at->element);
    }
  }
  define(i, b_.CreateGEP(source, base, indices, "",
                         in_bounds ? llvm::GEPNoWrapFlags::inBounds() : llvm::GEPNoWrapFlags::none()));
}

}  // namespace kiln::spirv
