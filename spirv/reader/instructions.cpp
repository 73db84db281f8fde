// Dispatch of instructions to their categories.
#include "spirv/reader/translator.hpp"

namespace kiln::spirv {

using spv::Op;

llvm::Value* translator::integer_operand(std::uint32_t id, const instruction_words& i) const {
  llvm::Value* v = value(id);
  require(v->getType()->isIntOrIntVectorTy(), i, "an operand is not an integer");
  return v;
}

void translator::emit(const instruction_words& i) {
  switch (static_cast<Op>(i.opcode)) {
    case Op::OpPhi:
    case Op::OpBranch:
    case Op::OpBranchConditional:
    case Op::OpSwitch:
    case Op::OpReturn:
    case Op::OpReturnValue:
    case Op::OpUnreachable:
    case Op::OpVariable:
    case Op::OpFunctionCall:
    case Op::OpLoopMerge:
    case Op::OpSelectionMerge:
    case Op::OpLine:
    case Op::OpNoLine:
    case Op::OpNop:
    case Op::OpLifetimeStart:
    case Op::OpLifetimeStop: emit_control(i); return;
    case Op::OpUndef: declare_constant(i); return;
    default: break;
  }
  if (!(emit_arithmetic(i) || emit_conversion(i) || emit_memory(i) || emit_composite(i) || emit_atomic(i) ||
        emit_group(i) || emit_extended(i)))
    refuse(opcode_name(i.opcode) + " in a function");
}

}  // namespace kiln::spirv
