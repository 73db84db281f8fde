#include "spirv/reader/translator.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/error.hpp"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

namespace kiln::spirv {

using spv::Decoration;
using spv::Op;
using spv::StorageClass;

namespace {

// LLVM's SPIR-V back end emits this length for an array of unknown length.
constexpr std::uint32_t unknown_size = 0xffffffff;
constexpr std::uint64_t largest_object = std::uint64_t{1} << 30;

}  // namespace

translator::translator(const binary& source, llvm::Module& module, const read_options& options)
    : source_(source),
      module_(module),
      context_(module.getContext()),
      options_(options),
      b_(module.getContext()),
      values_(source.id_bound()),
      type_of_(source.id_bound()),
      blocks_(source.id_bound()) {}

void translator::refuse(const std::string& what) const { throw error(error_kind::unsupported, "SPIR-V: " + what); }

void translator::require(bool holds, const instruction_words& i, const char* what) const {
  if (!holds)
    throw error(error_kind::corrupted, fmt::format("SPIR-V: {}{}: {}", opcode_name(i.opcode),
                                                   i.result ? fmt::format(" of id {}", i.result) : "", what));
}

void translator::run() {
  const auto& all = source_.instructions();
  bool inside = false;
  for (std::size_t at = 0; at < all.size(); ++at) {
    auto opcode = static_cast<Op>(all[at].opcode);
    if (opcode == Op::OpFunction) {
      declare_function(at);
      inside = true;
    }
    if (!inside) declare(all[at]);
    if (opcode == Op::OpFunctionEnd) inside = false;
  }
  for (std::size_t at = 0; at < all.size(); ++at)
    if (static_cast<Op>(all[at].opcode) == Op::OpFunction) emit_function(at);
  refuse_recursion();
}

const type_info& translator::type(std::uint32_t id) const {
  auto found = types_.find(id);
  if (found == types_.end()) throw error(error_kind::corrupted, fmt::format("SPIR-V: id {} is not a type", id));
  return found->second;
}

llvm::Value* translator::value(std::uint32_t id) const {
  if (id >= values_.size() || !values_[id])
    throw error(error_kind::corrupted, fmt::format("SPIR-V: id {} is not a value here", id));
  return values_[id];
}

std::uint32_t translator::type_of(std::uint32_t id) const { return id < type_of_.size() ? type_of_[id] : 0; }

std::uint64_t translator::integer_constant(std::uint32_t id) const {
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value(id));
  if (!constant) refuse(fmt::format("id {} must be an integer constant", id));
  return constant->getValue().getLimitedValue();
}

void translator::define(const instruction_words& i, llvm::Value* v) {
  require(v->getType() == llvm_type(i.type), i);
  values_[i.result] = v;
  type_of_[i.result] = i.type;
}

const decoration* translator::find(std::uint32_t id, Decoration kind) const {
  for (auto [at, end] = decorations_.equal_range(id); at != end; ++at)
    if (at->second.kind == kind) return &at->second;
  return nullptr;
}

std::string translator::name_of(std::uint32_t id) const {
  if (auto entry = entry_points_.find(id); entry != entry_points_.end()) return entry->second;
  if (const decoration* linkage = find(id, Decoration::LinkageAttributes)) return read_string(linkage->words).text;
  auto found = names_.find(id);
  return found == names_.end() ? "" : found->second;
}

unsigned translator::space_of(StorageClass storage) const {
  switch (storage) {
    case StorageClass::Function: return options_.spaces.function;
    case StorageClass::Workgroup: return options_.spaces.workgroup;
    case StorageClass::CrossWorkgroup: return options_.spaces.global;
    case StorageClass::UniformConstant: return options_.spaces.constant;
    case StorageClass::Generic: return options_.spaces.generic;
    case StorageClass::Input: return options_.spaces.constant;
    default: refuse(fmt::format("storage class {} is not supported", static_cast<unsigned>(storage)));
  }
}

void translator::declare(const instruction_words& i) {
  switch (static_cast<Op>(i.opcode)) {
    case Op::OpName: names_[i.operands[0]] = read_string(i.operands.subspan(1)).text; break;
    case Op::OpEntryPoint:
      if (static_cast<spv::ExecutionModel>(i.operands[0]) != spv::ExecutionModel::Kernel)
        refuse("an entry point that is not a kernel");
      entry_points_[i.operands[1]] = read_string(i.operands.subspan(2)).text;
      break;
    case Op::OpMemoryModel:
      if (static_cast<spv::AddressingModel>(i.operands[0]) != spv::AddressingModel::Physical64 ||
          static_cast<spv::MemoryModel>(i.operands[1]) != spv::MemoryModel::OpenCL)
        refuse("an addressing model that is not Physical64, or a memory model that is not OpenCL");
      break;
    case Op::OpExtInstImport: {
      std::string name = read_string(i.operands).text;
      if (name != "OpenCL.std" && !name.starts_with("NonSemantic."))
        refuse("extended instructions '" + name + "' are not supported");
      extended_sets_[i.result] = name;
      break;
    }
    case Op::OpDecorate:
    case Op::OpDecorateId: {
      decoration d{static_cast<Decoration>(i.operands[1]), {i.operands.begin() + 2, i.operands.end()}};
      if (d.kind == Decoration::BuiltIn) builtins_[i.operands[0]] = static_cast<spv::BuiltIn>(d.words[0]);
      decorations_.emplace(i.operands[0], std::move(d));
      break;
    }
    case Op::OpTypeVoid:
    case Op::OpTypeBool:
    case Op::OpTypeInt:
    case Op::OpTypeFloat:
    case Op::OpTypeVector:
    case Op::OpTypeArray:
    case Op::OpTypeStruct:
    case Op::OpTypePointer:
    case Op::OpTypeFunction: declare_type(i); break;
    case Op::OpTypeForwardPointer: {
      type_info& t = types_[i.operands[0]];
      t.storage = static_cast<StorageClass>(i.operands[1]);
      t.type = llvm::PointerType::get(context_, space_of(t.storage));
      t.kind = Op::OpTypePointer;
      break;
    }
    case Op::OpConstantTrue:
    case Op::OpConstantFalse:
    case Op::OpConstant:
    case Op::OpConstantComposite:
    case Op::OpConstantNull:
    case Op::OpSpecConstantTrue:
    case Op::OpSpecConstantFalse:
    case Op::OpSpecConstant:
    case Op::OpSpecConstantComposite:
    case Op::OpSpecConstantOp:
    case Op::OpUndef: declare_constant(i); break;
    case Op::OpVariable: declare_variable(i); break;
    default: break;  // debug names and execution modes, which do not affect code
  }
}

void translator::declare_type(const instruction_words& i) {
  type_info t;
  t.kind = static_cast<Op>(i.opcode);
  auto sized = [&](std::uint32_t id) {
    llvm::Type* member = llvm_type(id);
    require(member->isSized() && !member->isVoidTy(), i, "it holds a type without a size");
    return member;
  };
  switch (t.kind) {
    case Op::OpTypeVoid: t.type = llvm::Type::getVoidTy(context_); break;
    case Op::OpTypeBool: t.type = llvm::Type::getInt1Ty(context_); break;
    case Op::OpTypeInt: t.type = llvm::Type::getIntNTy(context_, i.operands[0]); break;
    case Op::OpTypeFloat:
      if (source_.is_bfloat(i.result)) t.type = llvm::Type::getBFloatTy(context_);
      else if (i.operands[0] == 16) t.type = llvm::Type::getHalfTy(context_);
      else if (i.operands[0] == 32) t.type = llvm::Type::getFloatTy(context_);
      else if (i.operands[0] == 64) t.type = llvm::Type::getDoubleTy(context_);
      else refuse(fmt::format("floats of {} bits", i.operands[0]));
      break;
    case Op::OpTypeVector: {
      llvm::Type* element = llvm_type(i.operands[0]);
      require(llvm::VectorType::isValidElementType(element) && i.operands[1] >= 1 && i.operands[1] <= 64, i,
              "this is not a valid vector type");
      t.element = i.operands[0];
      t.type = llvm::FixedVectorType::get(element, i.operands[1]);
      break;
    }
    case Op::OpTypeArray: {
      std::uint64_t count = integer_constant(i.operands[1]);
      if (count == unknown_size) count = 0;
      llvm::Type* element = sized(i.operands[0]);
      require(llvm::ArrayType::isValidElementType(element), i, "this is not a valid array type");
      std::uint64_t bytes = module_.getDataLayout().getTypeAllocSize(element);
      if (bytes && count > largest_object / bytes) refuse("an array of more than 1 GiB");
      if (count > largest_object) refuse("an array of more than 2^30 elements");
      t.element = i.operands[0];
      t.type = llvm::ArrayType::get(element, count);
      break;
    }
    case Op::OpTypeStruct: {
      std::vector<llvm::Type*> members;
      std::uint64_t bytes = 0;
      for (std::uint32_t id : i.operands) {
        members.push_back(sized(id));
        require(llvm::StructType::isValidElementType(members.back()), i, "this is not a valid struct type");
        bytes += module_.getDataLayout().getTypeAllocSize(members.back());
        if (bytes > largest_object) refuse("a struct of more than 1 GiB");
      }
      t.members.assign(i.operands.begin(), i.operands.end());
      t.type = llvm::StructType::get(context_, members, find(i.result, Decoration::CPacked) != nullptr);
      break;
    }
    case Op::OpTypePointer:
      t.storage = static_cast<StorageClass>(i.operands[0]);
      t.element = i.operands[1];
      t.type = llvm::PointerType::get(context_, space_of(t.storage));
      break;
    case Op::OpTypeFunction: {
      std::vector<llvm::Type*> parameters;
      for (std::uint32_t id : i.operands.subspan(1)) parameters.push_back(sized(id));
      llvm::Type* result = llvm_type(i.operands[0]);
      require(llvm::FunctionType::isValidReturnType(result), i, "this is not a valid return type");
      t.element = i.operands[0];
      t.members.assign(i.operands.begin() + 1, i.operands.end());
      t.type = llvm::FunctionType::get(result, parameters, false);
      break;
    }
    default: break;
  }
  types_[i.result] = std::move(t);
}

void translator::declare_constant(const instruction_words& i) {
  llvm::Type* t = llvm_type(i.type);
  require(t->isFirstClassType() && t->isSized() && !t->isFunctionTy(), i, "constants cannot have this type");
  switch (static_cast<Op>(i.opcode)) {
    case Op::OpConstantTrue:
    case Op::OpSpecConstantTrue: define(i, llvm::ConstantInt::getTrue(context_)); return;
    case Op::OpConstantFalse:
    case Op::OpSpecConstantFalse: define(i, llvm::ConstantInt::getFalse(context_)); return;
    case Op::OpConstantNull: define(i, llvm::Constant::getNullValue(t)); return;
    case Op::OpUndef: define(i, llvm::UndefValue::get(t)); return;
    case Op::OpConstant:
    case Op::OpSpecConstant: return declare_number(i, t);
    case Op::OpConstantComposite:
    case Op::OpSpecConstantComposite: return declare_composite(i, t);
    case Op::OpSpecConstantOp: return declare_folded(i);
    default: return;
  }
}

void translator::declare_number(const instruction_words& i, llvm::Type* t) {
  require(t->isIntegerTy() || t->isFloatingPointTy(), i);
  unsigned bits = t->getPrimitiveSizeInBits();
  require(i.operands.size() == (bits + 31) / 32, i, "its literal does not match the width of its type");
  std::vector<std::uint64_t> parts((bits + 63) / 64);
  for (std::size_t k = 0; k < i.operands.size(); ++k) parts[k / 2] |= std::uint64_t{i.operands[k]} << (k % 2 * 32);
  llvm::APInt number(std::max(64u, bits), parts);
  number = number.trunc(bits);
  define(i, t->isIntegerTy() ? static_cast<llvm::Constant*>(llvm::ConstantInt::get(context_, number))
                             : llvm::ConstantFP::get(context_, llvm::APFloat(t->getFltSemantics(), number)));
}

void translator::declare_composite(const instruction_words& i, llvm::Type* t) {
  std::vector<llvm::Constant*> parts;
  for (std::uint32_t id : i.operands) {
    parts.push_back(llvm::dyn_cast<llvm::Constant>(value(id)));
    require(parts.back(), i, "a part is not a constant");
  }
  auto fits = [&](std::size_t count, auto part_type) {
    require(parts.size() == count, i, "its number of parts is wrong");
    for (std::size_t k = 0; k < parts.size(); ++k)
      require(parts[k]->getType() == part_type(static_cast<unsigned>(k)), i, "a part has the wrong type");
  };
  if (auto* array = llvm::dyn_cast<llvm::ArrayType>(t)) {
    fits(array->getNumElements(), [&](unsigned) { return array->getElementType(); });
    define(i, llvm::ConstantArray::get(array, parts));
  } else if (auto* record = llvm::dyn_cast<llvm::StructType>(t)) {
    fits(record->getNumElements(), [&](unsigned k) { return record->getElementType(k); });
    define(i, llvm::ConstantStruct::get(record, parts));
  } else {
    auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(t);
    require(vector, i);
    fits(vector->getNumElements(), [&](unsigned) { return vector->getElementType(); });
    define(i, llvm::ConstantVector::get(parts));
  }
}

// Emits the operation and expects the builder to fold it to a constant.
void translator::declare_folded(const instruction_words& i) {
  auto opcode = static_cast<Op>(i.operands[0]);
  bool folds = opcode == Op::OpSelect || opcode == Op::OpNot || opcode == Op::OpSNegate || opcode == Op::OpUConvert ||
               opcode == Op::OpSConvert || (opcode >= Op::OpIAdd && opcode <= Op::OpSMod) ||
               (opcode >= Op::OpLogicalEqual && opcode <= Op::OpSLessThanEqual) ||
               (opcode >= Op::OpShiftRightLogical && opcode <= Op::OpBitwiseAnd);
  if (!folds) refuse("a specialization constant made by " + opcode_name(i.operands[0]));
  instruction_words operation{static_cast<std::uint16_t>(opcode), i.type, i.result, i.operands.subspan(1)};
  std::size_t operands = opcode == Op::OpSelect ? 3
                         : opcode == Op::OpNot || opcode == Op::OpSNegate || opcode == Op::OpUConvert ||
                                 opcode == Op::OpSConvert || opcode == Op::OpLogicalNot
                             ? 1
                             : 2;
  require(operation.operands.size() == operands, i, "its number of operands is wrong");
  for (std::uint32_t id : operation.operands)
    require(llvm::isa<llvm::Constant>(value(id)), i, "an operand is not a constant");
  // Use a scratch function, because an operation that does not fold needs an insertion point.
  llvm::Function* scratch = llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(context_), false),
                                                   llvm::GlobalValue::InternalLinkage, "", module_);
  b_.SetInsertPoint(llvm::BasicBlock::Create(context_, "", scratch));
  emit(operation);
  bool constant = llvm::isa<llvm::Constant>(values_[i.result]);
  b_.ClearInsertionPoint();
  if (constant) scratch->eraseFromParent();
  if (!constant) refuse("a specialization constant whose value is not known");
}

void translator::declare_variable(const instruction_words& i) {
  const type_info& pointer = type(i.type);
  require(pointer.kind == Op::OpTypePointer && pointer.element, i, "its type is not a pointer");
  llvm::Type* content = llvm_type(pointer.element);
  require(content->isSized() && !content->isVoidTy() && !content->isFunctionTy(), i, "it holds a type without a size");
  if (builtins_.contains(i.result))
    refuse(fmt::format("built-in variable {}: kernels ask for their indices by intrinsics",
                       static_cast<unsigned>(builtins_.at(i.result))));
  auto storage = static_cast<StorageClass>(i.operands[0]);
  require(storage == pointer.storage, i, "its storage class differs from its type's");
  bool initialized = i.operands.size() > 1, workgroup = storage == StorageClass::Workgroup;
  const decoration* linkage = find(i.result, Decoration::LinkageAttributes);
  bool imported = linkage && static_cast<spv::LinkageType>(linkage->words.back()) == spv::LinkageType::Import;
  if (!workgroup && storage != StorageClass::CrossWorkgroup && storage != StorageClass::UniformConstant)
    refuse(fmt::format("a variable of storage class {} outside of functions", static_cast<unsigned>(storage)));
  if (imported && !workgroup) refuse("variable '" + name_of(i.result) + "', which is defined elsewhere");
  llvm::Constant* initializer = nullptr;
  if (initialized) {
    initializer = llvm::dyn_cast<llvm::Constant>(value(i.operands[1]));
    require(initializer && initializer->getType() == content, i, "its initializer has the wrong type");
    if (workgroup) initializer = nullptr;  // LDS is uninitialized when a workgroup begins
  }
  bool open = module_.getDataLayout().getTypeAllocSize(content) == 0;  // [0 x T]: the launch determines the size
  if (!initializer && !(workgroup && open))
    initializer = workgroup ? llvm::PoisonValue::get(content) : llvm::Constant::getNullValue(content);
  bool constant = find(i.result, Decoration::Constant) != nullptr || storage == StorageClass::UniformConstant;
  auto* variable = new llvm::GlobalVariable(
      module_, content, constant && !workgroup,
      initializer ? llvm::GlobalValue::InternalLinkage : llvm::GlobalValue::ExternalLinkage, initializer,
      name_of(i.result), nullptr, llvm::GlobalValue::NotThreadLocal, space_of(storage));
  if (workgroup) variable->addAttribute(workgroup_attribute);
  if (open) variable->setAlignment(llvm::Align(16));
  if (const decoration* alignment = find(i.result, Decoration::Alignment)) {
    std::uint32_t bytes = alignment->words.empty() ? 0 : alignment->words[0];
    require(llvm::isPowerOf2_32(bytes) && bytes <= 4096, i, "an invalid alignment");
    variable->setAlignment(std::max(llvm::Align(bytes), variable->getAlign().valueOrOne()));
  }
  define(i, variable);
}

std::unique_ptr<llvm::Module> read(std::span<const std::byte> bytes, llvm::LLVMContext& context,
                                   const read_options& options) {
  binary source(bytes);
  auto module = std::make_unique<llvm::Module>("amdgcnspirv", context);
  llvm::Triple triple(options.triple);
  module->setTargetTriple(triple);
  module->setDataLayout(triple.computeDataLayout());
  translator(source, *module, options).run();
  std::string problems;
  llvm::raw_string_ostream stream(problems);
  if (llvm::verifyModule(*module, &stream))
    throw error(error_kind::corrupted, "SPIR-V: LLVM rejects the module: " + problems.substr(0, problems.find('\n')));
  return module;
}

}  // namespace kiln::spirv
