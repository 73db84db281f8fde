// Lowers the functions of libm that a target lacks. A missing function becomes an expression of others, or a call of
// kiln.math.*. f16 and bf16 are computed in f32; vectors are computed element by element.
#include <fmt/format.h>

#include <algorithm>
#include <numbers>
#include <set>

#include "ir/error.hpp"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "spirv/lowering/lowering.hpp"
#include "spirv/reader/reader.hpp"

namespace kiln::spirv {
namespace {

using llvm::Value;
namespace intrinsic = llvm::Intrinsic;

constexpr std::string_view prefix = math_prefix;

struct intrinsic_row {
  intrinsic::ID id;
  std::string_view name;
};
constexpr intrinsic_row functions[] = {
    {intrinsic::exp, "exp"},   {intrinsic::exp2, "exp2"},   {intrinsic::exp10, "exp10"}, {intrinsic::log, "log"},
    {intrinsic::log2, "log2"}, {intrinsic::log10, "log10"}, {intrinsic::pow, "pow"},     {intrinsic::powi, "powi"},
    {intrinsic::sin, "sin"},   {intrinsic::cos, "cos"},     {intrinsic::tan, "tan"},     {intrinsic::asin, "asin"},
    {intrinsic::acos, "acos"}, {intrinsic::atan, "atan"},   {intrinsic::atan2, "atan2"}, {intrinsic::sinh, "sinh"},
    {intrinsic::cosh, "cosh"}, {intrinsic::tanh, "tanh"},
};

// f32 functions that AMD's back end expands accurately by itself.
constexpr std::string_view native_on_amd[] = {"exp", "exp2", "exp10", "log", "log2", "log10"};
// Functions that the loader does not resolve on the host (runtime/host_symbols.cpp). They are expanded below.
constexpr std::string_view made_on_host[] = {"exp10", "powi", "rsqrt"};

class math_lowering {
 public:
  math_lowering(llvm::Module& module, const lowering_target& target)
      : module_(module), target_(target), b_(module.getContext()) {}

  std::vector<std::string> run() {
    std::vector<llvm::Instruction*> found;
    for (llvm::Function& function : module_)
      for (llvm::BasicBlock& block : function)
        for (llvm::Instruction& i : block)
          if (!name_of(i).empty()) found.push_back(&i);
    for (llvm::Instruction* i : found) replace(*i);
    std::vector<llvm::Function*> unused;
    for (llvm::Function& function : module_)
      if (function.isDeclaration() && function.use_empty() && function.getName().starts_with(prefix))
        unused.push_back(&function);
    for (llvm::Function* function : unused) function->eraseFromParent();
    return {needed_.begin(), needed_.end()};
  }

 private:
  static std::string name_of(const llvm::Instruction& i) {
    if (i.getOpcode() == llvm::Instruction::FRem) return "fmod";
    const auto* call = llvm::dyn_cast<llvm::CallInst>(&i);
    const llvm::Function* callee = call ? call->getCalledFunction() : nullptr;
    if (!callee) return "";
    for (const intrinsic_row& row : functions)
      if (row.id == callee->getIntrinsicID()) return std::string(row.name);
    llvm::StringRef name = callee->getName();
    return name.starts_with(prefix) ? name.drop_front(prefix.size()).rsplit('.').first.str() : "";
  }

  void replace(llvm::Instruction& i) {
    std::string name = name_of(i);
    std::size_t count = i.getOpcode() == llvm::Instruction::FRem ? 2 : llvm::cast<llvm::CallInst>(i).arg_size();
    b_.SetInsertPoint(&i);
    b_.setFastMathFlags(i.getFastMathFlags());
    std::vector<Value*> operands;
    for (unsigned k = 0; k < count; ++k) operands.push_back(i.getOperand(k));
    Value* result;
    if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(i.getType())) {
      result = llvm::PoisonValue::get(vector);
      for (unsigned lane = 0; lane < vector->getNumElements(); ++lane) {
        std::vector<Value*> one;
        for (Value* v : operands) one.push_back(v->getType()->isVectorTy() ? b_.CreateExtractElement(v, lane) : v);
        result = b_.CreateInsertElement(result, scalar(name, one), lane);
      }
    } else {
      result = scalar(name, operands);
    }
    i.replaceAllUsesWith(result);
    i.eraseFromParent();
  }

  Value* scalar(const std::string& name, std::vector<Value*> x) {
    llvm::Type* t = x[0]->getType();
    if (t->isFloatTy() || t->isDoubleTy()) return function(name, x);
    for (Value*& v : x)
      if (v->getType() == t) v = b_.CreateFPExt(v, b_.getFloatTy());
    return b_.CreateFPTrunc(function(name, x), t);
  }

  Value* number(Value* like, double v) { return llvm::ConstantFP::get(like->getType(), v); }

  // Emits a function of f32 or f64.
  Value* function(const std::string& name, const std::vector<Value*>& x) {
    bool wide = x[0]->getType()->isDoubleTy(), host = target_.kind == machine_kind::host;
    if (host && std::ranges::find(made_on_host, name) == std::end(made_on_host)) return libm(name, x);
    if (target_.kind == machine_kind::amdgpu && !wide &&
        std::ranges::find(native_on_amd, name) != std::end(native_on_amd))
      return native(name, x);
    auto call = [&](const std::string& n, std::vector<Value*> y) { return function(n, y); };
    auto unary = [&](intrinsic::ID id, Value* v) -> Value* { return b_.CreateUnaryIntrinsic(id, v); };
    Value *a = x[0], *one = number(a, 1);
    if (name == "exp2")
      return target_.kind == machine_kind::nvidia && !wide
                 ? b_.CreateIntrinsic(a->getType(), intrinsic::nvvm_ex2_approx, {a})
                 : call("exp", {b_.CreateFMul(a, number(a, std::numbers::ln2))});
    if (name == "exp10") return call("pow", {number(a, 10), a});
    if (name == "log2") return b_.CreateFMul(call("log", {a}), number(a, std::numbers::log2e));
    if (name == "log10") return b_.CreateFMul(call("log", {a}), number(a, std::numbers::log10e));
    if (name == "powi") return call("pow", {a, b_.CreateSIToFP(x[1], a->getType())});
    if (name == "rsqrt") return b_.CreateFDiv(one, unary(intrinsic::sqrt, a));
    if (name == "hypot")
      return b_.CreateUnaryIntrinsic(intrinsic::sqrt, b_.CreateFAdd(b_.CreateFMul(a, a), b_.CreateFMul(x[1], x[1])));
    if (name == "erfc") return b_.CreateFSub(one, call("erf", {a}));
    if (name == "cbrt")
      return b_.CreateBinaryIntrinsic(intrinsic::copysign, call("pow", {unary(intrinsic::fabs, a), number(a, 1.0 / 3)}),
                                      a);
    if (name == "log1p") {
      // Corrects the rounding error of 1 + x with a first-order term.
      Value *sum = b_.CreateFAdd(a, one), *lost = b_.CreateFSub(a, b_.CreateFSub(sum, one)), *log = call("log", {sum});
      Value* usual = b_.CreateFCmpOLT(unary(intrinsic::fabs, a), number(a, 1e10));
      return b_.CreateSelect(b_.CreateAnd(usual, b_.CreateFCmpOGT(sum, number(a, 0))),
                             b_.CreateFAdd(log, b_.CreateFDiv(lost, sum)), log);
    }
    if (name == "expm1") {
      // e^x - 1 = tanh(x/2) (e^x + 1), which avoids cancellation for |x| < 1. For other x, compute the difference
      // directly.
      Value *e = call("exp", {a}),
            *exact = b_.CreateFMul(call("tanh", {b_.CreateFMul(a, number(a, 0.5))}), b_.CreateFAdd(e, one));
      return b_.CreateSelect(b_.CreateFCmpOLT(unary(intrinsic::fabs, a), one), exact, b_.CreateFSub(e, one));
    }
    if (name == "atan2") {
      // atan2(y, x) with y = a and x = xs.
      Value *xs = x[1], *zero = number(a, 0), *ratio = call("atan", {b_.CreateFDiv(a, xs)});
      Value *half = number(a, std::numbers::pi / 2), *pi = number(a, std::numbers::pi);
      Value* left = b_.CreateFAdd(ratio, b_.CreateBinaryIntrinsic(intrinsic::copysign, pi, a));
      Value* result = b_.CreateSelect(b_.CreateFCmpOLT(xs, zero), left, ratio);
      Value* on_axis =
          b_.CreateSelect(b_.CreateFCmpOEQ(a, zero), a, b_.CreateBinaryIntrinsic(intrinsic::copysign, half, a));
      return b_.CreateSelect(b_.CreateFCmpOEQ(xs, zero), on_axis, result);
    }
    if (host) return libm(name, x);
    std::string full = name + (wide ? ".f64" : ".f32");
    needed_.insert(full);
    return b_.CreateCall(declare(std::string(prefix) + full, x), x);
  }

  llvm::Function* declare(const std::string& name, const std::vector<Value*>& x) {
    std::vector<llvm::Type*> types;
    for (Value* v : x) types.push_back(v->getType());
    auto* result = llvm::cast<llvm::Function>(
        module_.getOrInsertFunction(name, llvm::FunctionType::get(x[0]->getType(), types, false)).getCallee());
    result->setDoesNotAccessMemory();
    result->setDoesNotThrow();
    result->setWillReturn();
    return result;
  }

  Value* native(const std::string& name, const std::vector<Value*>& x) {
    auto row = std::ranges::find(functions, name, &intrinsic_row::name);
    return b_.CreateIntrinsic(row->id, {x[0]->getType()}, x);
  }

  Value* libm(const std::string& name, const std::vector<Value*>& x) {
    if (name == "lgamma")
      throw error(error_kind::unsupported, "kernels may not call lgamma: it is not safe in several threads");
    llvm::Function* callee = declare(name + (x[0]->getType()->isDoubleTy() ? "" : "f"), x);
    // LLVM must not replace the call by a related function that the loader cannot resolve.
    callee->addFnAttr(llvm::Attribute::NoBuiltin);
    return b_.CreateCall(callee, x);
  }

  llvm::Module& module_;
  const lowering_target& target_;
  llvm::IRBuilder<> b_;
  std::set<std::string> needed_;
};

}  // namespace

std::vector<std::string> lower_math(llvm::Module& module, const lowering_target& target) {
  return math_lowering(module, target).run();
}

}  // namespace kiln::spirv
