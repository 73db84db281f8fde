// Imported functions, extended instructions and subgroup operations. All become LLVM intrinsics, or declarations kiln.*
// that the lowering replaces.
#include "llvm/IR/Intrinsics.h"

#include <fmt/format.h>
#include <spirv/unified1/OpenCL.std.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "ir/error.hpp"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "spirv/reader/translator.hpp"

namespace kiln::spirv {

namespace intrinsic = llvm::Intrinsic;
using spv::Op;

namespace {

// The intrinsics that every finalizer supports. Any other intrinsic is refused by name.
constexpr std::string_view accepted_names[] = {
    "llvm.amdgcn.workitem.id.x",
    "llvm.amdgcn.workitem.id.y",
    "llvm.amdgcn.workitem.id.z",
    "llvm.amdgcn.workgroup.id.x",
    "llvm.amdgcn.workgroup.id.y",
    "llvm.amdgcn.workgroup.id.z",
    "llvm.amdgcn.wavefrontsize",
    "llvm.amdgcn.s.barrier",
    "llvm.amdgcn.wave.barrier",
    "llvm.amdgcn.mbcnt.lo",
    "llvm.amdgcn.mbcnt.hi",
    "llvm.amdgcn.ds.bpermute",
    "llvm.amdgcn.ballot",
    "llvm.amdgcn.readfirstlane",
    "llvm.amdgcn.readlane",
    "llvm.amdgcn.s.sleep",
    "llvm.amdgcn.rcp",
    "llvm.amdgcn.rsq",
    "llvm.amdgcn.sqrt",
    "llvm.amdgcn.fract",
    "llvm.amdgcn.fmed3",
    "llvm.amdgcn.ubfe",
    "llvm.amdgcn.sbfe",
    "llvm.fma",
    "llvm.fmuladd",
    "llvm.sqrt",
    "llvm.floor",
    "llvm.ceil",
    "llvm.trunc",
    "llvm.rint",
    "llvm.nearbyint",
    "llvm.round",
    "llvm.roundeven",
    "llvm.fabs",
    "llvm.minnum",
    "llvm.maxnum",
    "llvm.minimum",
    "llvm.maximum",
    "llvm.minimumnum",
    "llvm.maximumnum",
    "llvm.copysign",
    "llvm.canonicalize",
    "llvm.is.fpclass",
    "llvm.ldexp",
    "llvm.exp",
    "llvm.exp2",
    "llvm.exp10",
    "llvm.log",
    "llvm.log2",
    "llvm.log10",
    "llvm.pow",
    "llvm.powi",
    "llvm.sin",
    "llvm.cos",
    "llvm.tan",
    "llvm.asin",
    "llvm.acos",
    "llvm.atan",
    "llvm.atan2",
    "llvm.sinh",
    "llvm.cosh",
    "llvm.tanh",
    "llvm.abs",
    "llvm.smax",
    "llvm.smin",
    "llvm.umax",
    "llvm.umin",
    "llvm.ctpop",
    "llvm.ctlz",
    "llvm.cttz",
    "llvm.bswap",
    "llvm.bitreverse",
    "llvm.fshl",
    "llvm.fshr",
    "llvm.sadd.sat",
    "llvm.uadd.sat",
    "llvm.ssub.sat",
    "llvm.usub.sat",
    "llvm.sadd.with.overflow",
    "llvm.uadd.with.overflow",
    "llvm.ssub.with.overflow",
    "llvm.usub.with.overflow",
    "llvm.smul.with.overflow",
    "llvm.umul.with.overflow",
    "llvm.scmp",
    "llvm.ucmp",
    "llvm.fptosi.sat",
    "llvm.fptoui.sat",
    "llvm.memcpy",
    "llvm.memmove",
    "llvm.memset",
    "llvm.assume",
    "llvm.expect",
    "llvm.freeze",
    "llvm.vector.reduce.add",
    "llvm.vector.reduce.mul",
    "llvm.vector.reduce.and",
    "llvm.vector.reduce.or",
    "llvm.vector.reduce.xor",
    "llvm.vector.reduce.smax",
    "llvm.vector.reduce.smin",
    "llvm.vector.reduce.umax",
    "llvm.vector.reduce.umin",
    "llvm.vector.reduce.fadd",
    "llvm.vector.reduce.fmax",
    "llvm.vector.reduce.fmin",
};

// Functions of libm for which LLVM has no intrinsic.
constexpr std::string_view math_names[] = {"erf",   "erfc", "cbrt",  "asinh", "acosh",  "atanh", "log1p",
                                           "expm1", "fmod", "hypot", "rsqrt", "tgamma", "lgamma"};

std::string underscored(std::string_view name) {
  std::string result(name);
  std::ranges::replace(result, '.', '_');
  return result;
}

// LLVM's intrinsics by name with underscores instead of dots, the form that imports use.
const std::unordered_map<std::string, intrinsic::ID>& intrinsics_by_import() {
  static const auto table = [] {
    std::unordered_map<std::string, intrinsic::ID> result;
    for (intrinsic::ID id = 1; id < intrinsic::num_intrinsics; ++id)
      result.emplace(underscored(std::string_view(intrinsic::getBaseName(id))), id);
    return result;
  }();
  return table;
}

// exp, __ocml_exp_f32, expf → {exp, float}
struct math_function {
  std::string name;
  bool known = false;
};
math_function math_of(std::string_view import) {
  std::string name(import);
  if (name.starts_with("__ocml_")) {
    name = name.substr(7);
    for (std::string_view suffix : {"_f16", "_f32", "_f64"})
      if (name.ends_with(suffix)) name.resize(name.size() - 4);
  }
  auto find = [](std::string_view n) {
    return std::ranges::find(math_names, n) != std::end(math_names) ||
           intrinsics_by_import().contains("llvm_" + std::string(n));
  };
  if (find(name)) return {name, true};
  if (name.ends_with('f') && find(name.substr(0, name.size() - 1))) return {name.substr(0, name.size() - 1), true};
  return {};
}

}  // namespace

llvm::Function* translator::import_function(const std::string& name, llvm::FunctionType* t) {
  if (name == "spirv.llvm_amdgcn_implicitarg_ptr" || name == "spirv.llvm_amdgcn_dispatch_ptr") {
    // Their return type has another address space in SPIR-V than in LLVM. The lowering provides the contents.
    if (!t->getReturnType()->isPointerTy() || t->getNumParams())
      throw error(error_kind::corrupted, "SPIR-V: '" + name + "' has another type than LLVM's");
    auto callee = module_.getOrInsertFunction(
        name.ends_with("implicitarg_ptr") ? "kiln.implicitarg.ptr" : "kiln.dispatch.ptr", t);
    return llvm::cast<llvm::Function>(callee.getCallee());
  }
  constexpr std::string_view prefix = "spirv.";
  if (name.starts_with("spirv.llvm_")) {
    // The name may be followed by overload suffixes: find the longest name that matches, and check its signature.
    std::string stem = name.substr(prefix.size());
    const auto& table = intrinsics_by_import();
    for (std::size_t end = stem.size(); end != std::string::npos && end > 4; end = stem.rfind('_', end - 1)) {
      stem.resize(end);
      auto found = table.find(stem);
      if (found == table.end()) continue;
      llvm::StringRef base = intrinsic::getBaseName(found->second);
      if (std::ranges::find(accepted_names, std::string_view(base)) == std::end(accepted_names))
        refuse("intrinsic " + base.str() + " is not supported by every target");
      llvm::SmallVector<llvm::Type*> overloads;
      if (!intrinsic::getIntrinsicSignature(found->second, t, overloads))
        throw error(error_kind::corrupted, "SPIR-V: import '" + name + "' has another type than LLVM's " + base.str());
      // fmuladd may be fused or not; always fuse, so that all targets round equally.
      return intrinsic::getOrInsertDeclaration(
          &module_, found->second == intrinsic::fmuladd ? intrinsic::fma : found->second, overloads);
    }
    refuse("import '" + name + "' is not an intrinsic of LLVM " LLVM_VERSION_STRING);
  }
  if (math_function math = math_of(name); math.known) {
    llvm::Type* result = t->getReturnType();
    bool fits =
        result->isFloatingPointTy() && std::ranges::all_of(t->params(), [&](llvm::Type* p) { return p == result; });
    if (fits) {
      if (auto found = intrinsics_by_import().find("llvm_" + math.name); found != intrinsics_by_import().end()) {
        llvm::SmallVector<llvm::Type*> overloads;
        if (intrinsic::getIntrinsicSignature(found->second, t, overloads))
          return intrinsic::getOrInsertDeclaration(&module_, found->second, overloads);
      }
      const char* width = result->isHalfTy()     ? "f16"
                          : result->isFloatTy()  ? "f32"
                          : result->isDoubleTy() ? "f64"
                                                 : "bf16";
      auto* function =
          llvm::cast<llvm::Function>(module_.getOrInsertFunction(math_prefix + math.name + "." + width, t).getCallee());
      if (function->getFunctionType() != t)
        throw error(error_kind::corrupted, "SPIR-V: '" + name + "' is imported with two types");
      function->setDoesNotAccessMemory();
      function->setDoesNotThrow();
      function->setWillReturn();
      return function;
    }
  }
  refuse("function '" + name + "' is not defined");
}

llvm::Value* translator::call(intrinsic::ID id, llvm::ArrayRef<llvm::Type*> overloads,
                              llvm::ArrayRef<llvm::Value*> operands) {
  return b_.CreateCall(intrinsic::getOrInsertDeclaration(&module_, id, overloads), operands);
}

llvm::Value* translator::lane() {
  llvm::Value* low = call(intrinsic::amdgcn_mbcnt_lo, {}, {b_.getInt32(~0u), b_.getInt32(0)});
  return call(intrinsic::amdgcn_mbcnt_hi, {}, {b_.getInt32(~0u), low});
}

// Returns the value of lane `from`, transferred in 32-bit words.
llvm::Value* translator::from_lane(llvm::Value* v, llvm::Value* from) {
  llvm::Type* t = v->getType();
  unsigned bits = static_cast<unsigned>(t->getPrimitiveSizeInBits());
  if (bits == 0) refuse("a subgroup operation on a value that is not a number");
  unsigned count = (bits + 31) / 32;
  llvm::Value *all = b_.CreateZExt(b_.CreateBitCast(v, b_.getIntNTy(bits)), b_.getIntNTy(count * 32)),
              *address = b_.CreateShl(from, 2), *result = b_.getIntN(count * 32, 0);
  for (unsigned k = 0; k < count; ++k) {
    llvm::Value* word = b_.CreateTrunc(b_.CreateLShr(all, k * 32), b_.getInt32Ty());
    word = call(intrinsic::amdgcn_ds_bpermute, {}, {address, word});
    result = b_.CreateOr(result, b_.CreateShl(b_.CreateZExt(word, result->getType()), k * 32));
  }
  return b_.CreateBitCast(b_.CreateTrunc(result, b_.getIntNTy(bits)), t);
}

bool translator::emit_group(const instruction_words& i) {
  auto opcode = static_cast<Op>(i.opcode);
  if (opcode < Op::OpGroupNonUniformElect || opcode > Op::OpGroupNonUniformShuffleDown) return false;
  if (integer_constant(i.operands[0]) != static_cast<std::uint64_t>(spv::Scope::Subgroup))
    refuse(opcode_name(i.opcode) + " of a scope other than the subgroup");
  auto ballot = [&](llvm::Value* predicate) { return call(intrinsic::amdgcn_ballot, {b_.getInt64Ty()}, {predicate}); };
  auto predicate = [&] {
    llvm::Value* v = value(i.operands[1]);
    require(v->getType()->isIntegerTy(1), i);
    return v;
  };
  auto first = [&] {
    return b_.CreateTrunc(b_.CreateIntrinsic(b_.getInt64Ty(), intrinsic::cttz, {ballot(b_.getTrue()), b_.getTrue()}),
                          b_.getInt32Ty());
  };
  auto number = [&] {
    llvm::Value* v = integer_operand(i.operands[2], i);
    require(v->getType()->isIntegerTy(), i);
    return b_.CreateZExtOrTrunc(v, b_.getInt32Ty());
  };
  if (opcode >= Op::OpGroupNonUniformShuffle && i.operands.size() > 3)
    refuse(opcode_name(i.opcode) + " with a cluster size");
  switch (opcode) {
    case Op::OpGroupNonUniformElect: define(i, b_.CreateICmpEQ(lane(), first())); return true;
    case Op::OpGroupNonUniformAny: define(i, b_.CreateICmpNE(ballot(predicate()), b_.getInt64(0))); return true;
    case Op::OpGroupNonUniformAll:
      define(i, b_.CreateICmpEQ(ballot(b_.CreateNot(predicate())), b_.getInt64(0)));
      return true;
    case Op::OpGroupNonUniformBallot: {
      auto* t = llvm::dyn_cast<llvm::FixedVectorType>(llvm_type(i.type));
      require(t && t->getNumElements() == 4 && t->getElementType()->isIntegerTy(32), i);
      llvm::Value *mask = ballot(predicate()), *result = llvm::Constant::getNullValue(t);
      result = b_.CreateInsertElement(result, b_.CreateTrunc(mask, b_.getInt32Ty()), std::uint64_t{0});
      define(i, b_.CreateInsertElement(result, b_.CreateTrunc(b_.CreateLShr(mask, 32), b_.getInt32Ty()),
                                       std::uint64_t{1}));
      return true;
    }
    case Op::OpGroupNonUniformBroadcastFirst: define(i, from_lane(value(i.operands[1]), first())); return true;
    case Op::OpGroupNonUniformBroadcast:
    case Op::OpGroupNonUniformShuffle: define(i, from_lane(value(i.operands[1]), number())); return true;
    case Op::OpGroupNonUniformShuffleXor:
      define(i, from_lane(value(i.operands[1]), b_.CreateXor(lane(), number())));
      return true;
    case Op::OpGroupNonUniformShuffleUp:
      define(i, from_lane(value(i.operands[1]), b_.CreateSub(lane(), number())));
      return true;
    case Op::OpGroupNonUniformShuffleDown:
      define(i, from_lane(value(i.operands[1]), b_.CreateAdd(lane(), number())));
      return true;
    default: return false;
  }
}

namespace {

struct extended_row {
  std::uint32_t number;  // instruction number in OpenCL.std
  intrinsic::ID id;
  std::size_t operands;
};
const extended_row extended[] = {
    {OpenCLLIB::Acos, intrinsic::acos, 1},         {OpenCLLIB::Asin, intrinsic::asin, 1},
    {OpenCLLIB::Atan, intrinsic::atan, 1},         {OpenCLLIB::Atan2, intrinsic::atan2, 2},
    {OpenCLLIB::Ceil, intrinsic::ceil, 1},         {OpenCLLIB::Copysign, intrinsic::copysign, 2},
    {OpenCLLIB::Cos, intrinsic::cos, 1},           {OpenCLLIB::Cosh, intrinsic::cosh, 1},
    {OpenCLLIB::Exp, intrinsic::exp, 1},           {OpenCLLIB::Exp2, intrinsic::exp2, 1},
    {OpenCLLIB::Exp10, intrinsic::exp10, 1},       {OpenCLLIB::Fabs, intrinsic::fabs, 1},
    {OpenCLLIB::Floor, intrinsic::floor, 1},       {OpenCLLIB::Fma, intrinsic::fma, 3},
    {OpenCLLIB::Fmax, intrinsic::maxnum, 2},       {OpenCLLIB::Fmin, intrinsic::minnum, 2},
    {OpenCLLIB::Log, intrinsic::log, 1},           {OpenCLLIB::Log2, intrinsic::log2, 1},
    {OpenCLLIB::Log10, intrinsic::log10, 1},       {OpenCLLIB::Mad, intrinsic::fma, 3},
    {OpenCLLIB::Pow, intrinsic::pow, 2},           {OpenCLLIB::Rint, intrinsic::rint, 1},
    {OpenCLLIB::Round, intrinsic::round, 1},       {OpenCLLIB::Sin, intrinsic::sin, 1},
    {OpenCLLIB::Sinh, intrinsic::sinh, 1},         {OpenCLLIB::Sqrt, intrinsic::sqrt, 1},
    {OpenCLLIB::Tan, intrinsic::tan, 1},           {OpenCLLIB::Tanh, intrinsic::tanh, 1},
    {OpenCLLIB::Trunc, intrinsic::trunc, 1},       {OpenCLLIB::SMax, intrinsic::smax, 2},
    {OpenCLLIB::SMin, intrinsic::smin, 2},         {OpenCLLIB::UMax, intrinsic::umax, 2},
    {OpenCLLIB::UMin, intrinsic::umin, 2},         {OpenCLLIB::Popcount, intrinsic::ctpop, 1},
    {OpenCLLIB::SAdd_sat, intrinsic::sadd_sat, 2}, {OpenCLLIB::UAdd_sat, intrinsic::uadd_sat, 2},
    {OpenCLLIB::SSub_sat, intrinsic::ssub_sat, 2}, {OpenCLLIB::USub_sat, intrinsic::usub_sat, 2},
};

}  // namespace

bool translator::emit_extended(const instruction_words& i) {
  if (static_cast<Op>(i.opcode) != Op::OpExtInst) return false;
  auto set = extended_sets_.find(i.operands[0]);
  require(set != extended_sets_.end(), i, "its set of instructions is not imported");
  if (set->second != "OpenCL.std") return true;  // non-semantic instructions are ignored
  auto row = std::ranges::find(extended, i.operands[1], &extended_row::number);
  if (row == std::end(extended)) refuse("instruction " + extended_name(i.operands[1]) + " of OpenCL.std");
  require(i.operands.size() == row->operands + 2, i);
  std::vector<llvm::Value*> operands;
  for (std::uint32_t id : i.operands.subspan(2)) {
    operands.push_back(value(id));
    require(operands.back()->getType() == llvm_type(i.type), i);
  }
  llvm::Type* t = llvm_type(i.type);
  std::vector<llvm::Type*> types(operands.size(), t);
  auto* signature = llvm::FunctionType::get(t, types, false);
  llvm::SmallVector<llvm::Type*> overloads;
  require(intrinsic::getIntrinsicSignature(row->id, signature, overloads), i);
  define(i, call(row->id, overloads, operands));
  return true;
}

}  // namespace kiln::spirv
