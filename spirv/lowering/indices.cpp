#include "spirv/lowering/indices.hpp"

#include <array>
#include <cstring>
#include <numbers>

#include "ir/error.hpp"
#include "llvm/IR/IntrinsicsAMDGPU.h"
#include "llvm/IR/Module.h"
#include "spirv/lowering/open_sizes.hpp"

namespace kiln::spirv {
namespace {

using llvm::Value;
namespace intrinsic = llvm::Intrinsic;

template <class T, std::size_t N>
void put(std::array<std::uint8_t, N>& bytes, std::size_t at, std::int64_t value) {
  auto v = static_cast<T>(value);
  std::memcpy(bytes.data() + at, &v, sizeof v);
}

Value* constant_bytes(llvm::Module& module, llvm::Type* pointer, llvm::ArrayRef<std::uint8_t> bytes,
                      llvm::StringRef name) {
  auto* contents = llvm::ConstantDataArray::get(module.getContext(), bytes);
  auto* variable = new llvm::GlobalVariable(module, contents->getType(), true, llvm::GlobalValue::InternalLinkage,
                                            contents, name, nullptr, llvm::GlobalValue::NotThreadLocal,
                                            module.getTargetTriple().isAMDGPU()  ? 4
                                            : module.getTargetTriple().isNVPTX() ? 1
                                                                                 : 0);
  variable->setAlignment(llvm::Align(16));
  return llvm::ConstantExpr::getPointerBitCastOrAddrSpaceCast(variable, pointer);
}

// The implicit arguments of code object version 5 and later: numbers of workgroups, sizes of a workgroup, remainders,
// global offsets, number of dimensions.
Value* implicit_arguments(llvm::Module& module, llvm::Type* pointer, const launch_site& launch) {
  std::array<std::uint8_t, 256> bytes{};
  for (std::size_t d = 0; d < 3; ++d) {
    put<std::uint32_t>(bytes, 4 * d, launch.grid[d]);
    put<std::uint16_t>(bytes, 12 + 2 * d, launch.block[d]);
  }
  put<std::uint16_t>(bytes, 64, 3);
  return constant_bytes(module, pointer, bytes, "kiln.implicit." + launch.symbol);
}

// The dispatch packet of HSA: sizes of a workgroup at byte 4, of the grid in work items at byte 12.
Value* dispatch_packet(llvm::Module& module, llvm::Type* pointer, const launch_site& launch) {
  std::array<std::uint8_t, 64> bytes{};
  put<std::uint16_t>(bytes, 2, 3);
  for (std::size_t d = 0; d < 3; ++d) {
    put<std::uint16_t>(bytes, 4 + 2 * d, launch.block[d]);
    put<std::uint32_t>(bytes, 12 + 4 * d, launch.block[d] * launch.grid[d]);
  }
  return constant_bytes(module, pointer, bytes, "kiln.dispatch." + launch.symbol);
}

bool is_one(Value* size) {
  auto* constant = llvm::dyn_cast<llvm::ConstantInt>(size);
  return constant && constant->isOne();
}

// Returns digit `d` of a mixed-radix number with these sizes, the first digit fastest.
Value* digit(llvm::IRBuilder<>& b, Value* number, const std::array<Value*, 3>& sizes, std::size_t d) {
  if (is_one(sizes[d])) return b.getInt32(0);
  Value* below = b.getInt32(1);
  for (std::size_t k = 0; k < d; ++k) below = b.CreateMul(below, sizes[k]);
  Value* result = is_one(below) ? number : b.CreateUDiv(number, below);
  bool last = true;
  for (std::size_t k = d + 1; k < 3; ++k) last = last && is_one(sizes[k]);
  return last ? result : b.CreateURem(result, sizes[d]);
}

Value* digit_of_item(llvm::IRBuilder<>& b, const launch_site& launch, const index_values& indices, std::size_t d) {
  std::array<Value*, 3> sizes{};
  for (std::size_t k = 0; k < 3; ++k) sizes[k] = b.getInt32(static_cast<std::uint32_t>(launch.block[k]));
  return digit(b, indices.item, sizes, d);
}

Value* digit_of_group(llvm::IRBuilder<>& b, const launch_site& launch, const index_values& indices, std::size_t d) {
  if (!indices.group) return nullptr;
  std::array<Value*, 3> sizes{};
  for (std::size_t k = 0; k < 3; ++k) sizes[k] = grid_size(b, launch, k, indices.table);
  return digit(b, indices.group, sizes, d);
}

}  // namespace

std::vector<llvm::CallInst*> calls_of(llvm::Function& function) {
  std::vector<llvm::CallInst*> result;
  for (llvm::BasicBlock& block : function)
    for (llvm::Instruction& i : block)
      if (auto* c = llvm::dyn_cast<llvm::CallInst>(&i); c && c->getCalledFunction()) result.push_back(c);
  return result;
}

void replace(llvm::CallInst& call, Value* with) {
  if (!call.getType()->isVoidTy()) call.replaceAllUsesWith(with);
  call.eraseFromParent();
}

Value* index_replacement(llvm::IRBuilder<>& b, llvm::CallInst& call, const launch_site& launch, int wave,
                         const index_values& indices) {
  llvm::Module& module = *call.getModule();
  switch (call.getIntrinsicID()) {
    case intrinsic::amdgcn_workitem_id_x: return digit_of_item(b, launch, indices, 0);
    case intrinsic::amdgcn_workitem_id_y: return digit_of_item(b, launch, indices, 1);
    case intrinsic::amdgcn_workitem_id_z: return digit_of_item(b, launch, indices, 2);
    case intrinsic::amdgcn_workgroup_id_x: return digit_of_group(b, launch, indices, 0);
    case intrinsic::amdgcn_workgroup_id_y: return digit_of_group(b, launch, indices, 1);
    case intrinsic::amdgcn_workgroup_id_z: return digit_of_group(b, launch, indices, 2);
    case intrinsic::amdgcn_wavefrontsize: return b.getInt32(static_cast<std::uint32_t>(wave));
    default: break;
  }
  llvm::StringRef name = call.getCalledFunction()->getName();
  if (name == "kiln.implicitarg.ptr") {
    if (launch.has_open_grid()) read_open_grid(call, launch, indices.table);
    return implicit_arguments(module, call.getType(), launch);
  }
  if (name == "kiln.dispatch.ptr" && launch.has_open_grid())
    throw error(error_kind::unsupported,
                "kernel '" + launch.kernel + "' reads the dispatch packet, which is not known for grids of open size");
  if (name == "kiln.dispatch.ptr") return dispatch_packet(module, call.getType(), launch);
  return nullptr;
}

Value* portable_replacement(llvm::IRBuilder<>& b, llvm::CallInst& call) {
  auto operand = [&](unsigned k) { return call.getArgOperand(k); };
  auto one = [&] { return llvm::ConstantFP::get(call.getType(), 1); };
  auto unary = [&](intrinsic::ID id) -> Value* { return b.CreateUnaryIntrinsic(id, operand(0)); };
  // Extracts bits [offset, offset + width) of a word: shifts them down, then up to the top and down again with zero or
  // sign extension.
  auto field = [&](bool sign) -> Value* {
    unsigned bits = call.getType()->getIntegerBitWidth();
    Value *size = llvm::ConstantInt::get(call.getType(), bits),
          *mask = llvm::ConstantInt::get(call.getType(), bits - 1), *zero = llvm::ConstantInt::get(call.getType(), 0);
    Value *offset = b.CreateAnd(b.CreateZExtOrTrunc(operand(1), call.getType()), mask),
          *width = b.CreateAnd(b.CreateZExtOrTrunc(operand(2), call.getType()), mask);
    Value* shifted = sign ? b.CreateAShr(operand(0), offset) : b.CreateLShr(operand(0), offset);
    Value* up = b.CreateAnd(b.CreateSub(size, width), mask);
    Value* cut = sign ? b.CreateAShr(b.CreateShl(shifted, up), up) : b.CreateLShr(b.CreateShl(shifted, up), up);
    return b.CreateSelect(b.CreateICmpEQ(width, zero), zero, cut);
  };
  switch (call.getIntrinsicID()) {
    case intrinsic::amdgcn_rcp: return b.CreateFDiv(one(), operand(0));
    case intrinsic::amdgcn_rsq: return b.CreateFDiv(one(), unary(intrinsic::sqrt));
    case intrinsic::amdgcn_sqrt: return unary(intrinsic::sqrt);
    case intrinsic::amdgcn_fract: return b.CreateFSub(operand(0), unary(intrinsic::floor));
    case intrinsic::amdgcn_fmed3: {
      Value *low = b.CreateMinNum(operand(0), operand(1)), *high = b.CreateMaxNum(operand(0), operand(1));
      return b.CreateMaxNum(low, b.CreateMinNum(high, operand(2)));
    }
    case intrinsic::amdgcn_ubfe: return field(false);
    case intrinsic::amdgcn_sbfe: return field(true);
    case intrinsic::amdgcn_s_sleep: return b.getInt32(0);  // has no result and is just removed
    default: return nullptr;
  }
}

void refuse_leftovers(const llvm::Module& module, machine_kind kind) {
  for (const llvm::Function& function : module) {
    if (!function.isDeclaration() || function.use_empty()) continue;
    llvm::StringRef name = function.getName();
    bool amd = name.starts_with("llvm.amdgcn."), ours = name.starts_with("kiln.") && !name.starts_with("kiln.math.");
    if ((amd && kind != machine_kind::amdgpu) || ours)
      throw error(error_kind::unsupported, "SPIR-V: " + name.str() + " is not available on this target");
  }
}

}  // namespace kiln::spirv
