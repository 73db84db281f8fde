// Functions, calls and control flow. SPIR-V blocks become LLVM blocks, and OpPhi becomes phi. LLVM does not need merge
// instructions.
#include <fmt/format.h>

#include <algorithm>

#include "ir/error.hpp"
#include "llvm/IR/CFG.h"
#include "spirv/reader/translator.hpp"

namespace kiln::spirv {

using spv::Decoration;
using spv::Op;

namespace {

constexpr std::uint64_t most_local_bytes = 1 << 20;

struct parameter_attribute {
  spv::FunctionParameterAttribute number;
  llvm::Attribute::AttrKind kind;
};
constexpr parameter_attribute parameter_attributes[] = {
    {spv::FunctionParameterAttribute::NoAlias, llvm::Attribute::NoAlias},
    {spv::FunctionParameterAttribute::NoWrite, llvm::Attribute::ReadOnly},
};

}  // namespace

void translator::declare_function(std::size_t at) {
  const instruction_words& i = source_.instructions()[at];
  const type_info& t = type(i.operands[1]);
  require(t.kind == Op::OpTypeFunction, i, "its type is not a function type");
  require(llvm_type(i.type) == llvm_type(t.element), i, "its return type differs from its function type");
  auto* function_type = llvm::cast<llvm::FunctionType>(t.type);
  const decoration* linkage = find(i.result, Decoration::LinkageAttributes);
  bool imported = linkage && !linkage->words.empty() &&
                  static_cast<spv::LinkageType>(linkage->words.back()) == spv::LinkageType::Import;
  bool body = false;
  std::size_t next = at + 1, parameters = 0;
  for (; next < source_.instructions().size() &&
         static_cast<Op>(source_.instructions()[next].opcode) != Op::OpFunctionEnd;
       ++next) {
    auto opcode = static_cast<Op>(source_.instructions()[next].opcode);
    body |= opcode == Op::OpLabel;
    parameters += opcode == Op::OpFunctionParameter;
  }
  require(parameters == function_type->getNumParams(), i, "its number of parameters differs from its type");
  llvm::Function* function;
  if (!body) {
    require(imported, i, "it has no body");
    function = import_function(name_of(i.result), function_type);
  } else {
    bool entry = entry_points_.contains(i.result);
    if (entry && !function_type->getReturnType()->isVoidTy()) require(false, i, "a kernel returns a value");
    function = llvm::Function::Create(function_type,
                                      entry ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage,
                                      name_of(i.result), module_);
    // Whether a function depends on the set of active lanes is unknown until LLVM has analyzed it, so mark it as
    // convergent.
    function->addFnAttr(llvm::Attribute::Convergent);
    function->setDoesNotThrow();
    function->addFnAttr(llvm::Attribute::MustProgress);
    std::uint32_t control = i.operands[0];
    if (control & static_cast<std::uint32_t>(spv::FunctionControlMask::DontInline))
      function->addFnAttr(llvm::Attribute::NoInline);
    if (entry && function->getName() != name_of(i.result)) require(false, i, "its name is used twice");
  }
  values_[i.result] = function;
  type_of_[i.result] = i.operands[1];
}

llvm::BasicBlock* translator::block(std::uint32_t id) const {
  if (id >= blocks_.size() || !blocks_[id])
    throw error(error_kind::corrupted, fmt::format("SPIR-V: id {} is not a block of this function", id));
  return blocks_[id];
}

void translator::emit_function(std::size_t at) {
  const auto& all = source_.instructions();
  function_ = llvm::cast<llvm::Function>(value(all[at].result));
  if (function_->isDeclaration() && !llvm::isa<llvm::FunctionType>(llvm_type(all[at].operands[1]))) return;
  bool body = false;
  std::size_t end = at;
  std::ranges::fill(blocks_, nullptr);
  for (; static_cast<Op>(all[end].opcode) != Op::OpFunctionEnd; ++end)
    if (static_cast<Op>(all[end].opcode) == Op::OpLabel) {
      blocks_[all[end].result] = llvm::BasicBlock::Create(context_, "", function_);
      body = true;
    }
  if (!body) return;
  unsigned parameter = 0;
  phis_.clear();
  local_bytes_ = 0;
  for (std::size_t k = at + 1; k < end; ++k) {
    const instruction_words& i = all[k];
    switch (static_cast<Op>(i.opcode)) {
      case Op::OpFunctionParameter: {
        require(parameter < function_->arg_size(), i, "one parameter too many");
        llvm::Argument* argument = function_->getArg(parameter++);
        for (auto [d, last] = decorations_.equal_range(i.result); d != last; ++d)
          if (d->second.kind == Decoration::FuncParamAttr && !d->second.words.empty() &&
              argument->getType()->isPointerTy())
            for (const parameter_attribute& row : parameter_attributes)
              if (static_cast<spv::FunctionParameterAttribute>(d->second.words[0]) == row.number)
                argument->addAttr(row.kind);
        if (const decoration* a = find(i.result, Decoration::FuncParamAttr);
            a && !a->words.empty() &&
            static_cast<spv::FunctionParameterAttribute>(a->words[0]) == spv::FunctionParameterAttribute::ByVal &&
            function_->hasExternalLinkage())
          refuse("kernel '" + function_->getName().str() +
                 "' takes a struct by value; give its fields as parameters, or a pointer");
        define(i, argument);
        break;
      }
      case Op::OpLabel: b_.SetInsertPoint(block(i.result)); break;
      default:
        require(b_.GetInsertBlock() != nullptr &&
                    !(b_.GetInsertBlock()->getTerminator() && static_cast<Op>(i.opcode) != Op::OpNop &&
                      static_cast<Op>(i.opcode) != Op::OpLine && static_cast<Op>(i.opcode) != Op::OpNoLine),
                i, "it is outside of a block");
        emit(i);
    }
  }
  emit_phis();
  b_.ClearInsertionPoint();
  function_ = nullptr;
}

void translator::emit_phis() {
  for (auto [phi, words] : phis_) {
    const instruction_words& i = *words;
    require(i.operands.size() % 2 == 0, i);
    std::map<llvm::BasicBlock*, llvm::Value*> incoming;
    for (std::size_t k = 0; k + 1 < i.operands.size(); k += 2) {
      llvm::Value* v = value(i.operands[k]);
      require(v->getType() == phi->getType(), i);
      incoming[block(i.operands[k + 1])] = v;
    }
    // Add one entry for each edge: a switch may have several edges from one block.
    for (llvm::BasicBlock* predecessor : llvm::predecessors(phi->getParent())) {
      auto found = incoming.find(predecessor);
      require(found != incoming.end(), i, "it has no value for a predecessor of its block");
      phi->addIncoming(found->second, predecessor);
    }
  }
}

void translator::emit_control(const instruction_words& i) {
  switch (static_cast<Op>(i.opcode)) {
    case Op::OpPhi: {
      llvm::Type* t = llvm_type(i.type);
      llvm::BasicBlock* here = b_.GetInsertBlock();
      require(t->isFirstClassType() && here->getFirstNonPHIIt() == here->end(), i, "it follows other instructions");
      llvm::PHINode* phi = b_.CreatePHI(t, 2);
      phis_.emplace_back(phi, &i);
      define(i, phi);
      break;
    }
    case Op::OpBranch: b_.CreateBr(block(i.operands[0])); break;
    case Op::OpBranchConditional: {
      llvm::Value* condition = value(i.operands[0]);
      require(condition->getType()->isIntegerTy(1), i);
      b_.CreateCondBr(condition, block(i.operands[1]), block(i.operands[2]));
      break;
    }
    case Op::OpSwitch: {
      llvm::Value* selector = integer_operand(i.operands[0], i);
      require(selector->getType()->isIntegerTy() && selector->getType()->getIntegerBitWidth() <= 64, i);
      std::size_t literal = selector->getType()->getIntegerBitWidth() > 32 ? 2 : 1;
      require((i.operands.size() - 2) % (literal + 1) == 0, i);
      llvm::SwitchInst* result = b_.CreateSwitch(selector, block(i.operands[1]));
      for (std::size_t k = 2; k < i.operands.size(); k += literal + 1) {
        std::uint64_t number = i.operands[k] | (literal == 2 ? std::uint64_t{i.operands[k + 1]} << 32 : 0);
        auto* label =
            llvm::ConstantInt::get(context_, llvm::APInt(64, number).trunc(selector->getType()->getIntegerBitWidth()));
        require(result->findCaseValue(label) == result->case_default(), i, "a case label occurs twice");
        result->addCase(label, block(i.operands[k + literal]));
      }
      break;
    }
    case Op::OpReturn:
      require(function_->getReturnType()->isVoidTy(), i);
      b_.CreateRetVoid();
      break;
    case Op::OpReturnValue:
      require(value(i.operands[0])->getType() == function_->getReturnType(), i);
      b_.CreateRet(value(i.operands[0]));
      break;
    case Op::OpUnreachable: b_.CreateUnreachable(); break;
    case Op::OpVariable: {
      const type_info& pointer = type(i.type);
      require(pointer.kind == Op::OpTypePointer && pointer.storage == spv::StorageClass::Function && pointer.element, i,
              "a variable in a function must have storage class Function");
      llvm::Type* content = llvm_type(pointer.element);
      require(content->isSized() && !content->isVoidTy(), i);
      local_bytes_ += module_.getDataLayout().getTypeAllocSize(content);
      if (local_bytes_ > most_local_bytes)
        refuse("function '" + function_->getName().str() + "' has more than 1 MiB of variables");
      llvm::IRBuilder<> entry(&function_->getEntryBlock(), function_->getEntryBlock().begin());
      llvm::AllocaInst* variable = entry.CreateAlloca(content, options_.spaces.function);
      if (const decoration* alignment = find(i.result, Decoration::Alignment)) {
        std::uint32_t bytes = alignment->words.empty() ? 0 : alignment->words[0];
        require(llvm::isPowerOf2_32(bytes) && bytes <= 4096, i, "an invalid alignment");
        variable->setAlignment(llvm::Align(bytes));
      }
      define(i, variable);
      if (i.operands.size() > 1) {
        require(value(i.operands[1])->getType() == content, i);
        b_.CreateStore(value(i.operands[1]), variable);
      }
      break;
    }
    case Op::OpFunctionCall: emit_call(i); break;
    default: break;  // merge instructions and debug lines
  }
}

void translator::emit_call(const instruction_words& i) {
  auto* callee = llvm::dyn_cast<llvm::Function>(value(i.operands[0]));
  require(callee, i, "the callee is not a function");
  require(i.operands.size() - 1 == callee->arg_size(), i, "its number of arguments differs from the function's");
  std::vector<llvm::Value*> arguments;
  for (std::size_t k = 1; k < i.operands.size(); ++k) {
    llvm::Value* argument = value(i.operands[k]);
    llvm::Type* wanted = callee->getArg(static_cast<unsigned>(k - 1))->getType();
    require(argument->getType() == wanted, i, "the type of an argument differs from the parameter's");
    arguments.push_back(argument);
  }
  llvm::CallInst* call = b_.CreateCall(callee, arguments);
  if (!callee->isDeclaration() || !callee->isIntrinsic()) call->setConvergent();
  calls_[function_].insert(callee);
  if (call->getType()->isVoidTy()) {
    require(llvm_type(i.type)->isVoidTy(), i);
    values_[i.result] = call;
  } else {
    define(i, call);
  }
}

// GPUs have no growing stack, and the host inlines everything to run a workgroup.
void translator::refuse_recursion() const {
  std::map<llvm::Function*, int> state;  // 1: on the current path, 2: done
  std::vector<std::pair<llvm::Function*, std::set<llvm::Function*>::const_iterator>> path;
  static const std::set<llvm::Function*> none;
  auto callees = [&](llvm::Function* f) -> const std::set<llvm::Function*>& {
    auto found = calls_.find(f);
    return found == calls_.end() ? none : found->second;
  };
  for (const auto& [root, unused] : calls_) {
    if (state[root]) continue;
    state[root] = 1;
    path.emplace_back(root, callees(root).begin());
    while (!path.empty()) {
      auto& [function, next] = path.back();
      if (next == callees(function).end()) {
        state[function] = 2;
        path.pop_back();
        continue;
      }
      llvm::Function* callee = *next++;
      if (state[callee] == 1)
        refuse("recursion: function '" + callee->getName().str() + "' calls itself, directly or through others");
      if (state[callee] == 0) {
        state[callee] = 1;
        path.emplace_back(callee, callees(callee).begin());
      }
    }
  }
}

}  // namespace kiln::spirv
