#include "spirv/lowering/open_sizes.hpp"

#include <utility>
#include <vector>

#include "ir/error.hpp"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"

namespace kiln::spirv {
namespace {

// The implicit arguments begin with the three sizes of the grid, 4 bytes each.
constexpr std::int64_t field_bytes = 4, grid_bytes = 3 * field_bytes;

[[noreturn]] void refuse(const launch_site& launch) {
  throw error(
      error_kind::unsupported,
      "kernel '" + launch.kernel + "' has a grid of open size and reads it in a way that only known sizes allow");
}

void replace_load(llvm::LoadInst& load, std::int64_t offset, const launch_site& launch, llvm::Value* table) {
  const auto bytes = static_cast<std::int64_t>(load.getDataLayout().getTypeStoreSize(load.getType()));
  if (offset >= grid_bytes || offset + bytes <= 0) return;
  if (!load.getType()->isIntegerTy(32) || offset < 0 || offset % field_bytes != 0) refuse(launch);
  llvm::IRBuilder<> b(&load);
  load.replaceAllUsesWith(grid_size(b, launch, static_cast<std::size_t>(offset / field_bytes), table));
  load.eraseFromParent();
}

}  // namespace

llvm::Value* size_at(llvm::IRBuilder<>& b, llvm::Value* table, std::uint32_t place) {
  auto* load =
      b.CreateAlignedLoad(b.getInt64Ty(), b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), table, place), llvm::Align(8));
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b.getContext(), {}));
  return load;
}

llvm::Value* grid_size(llvm::IRBuilder<>& b, const launch_site& launch, std::size_t dimension, llvm::Value* table) {
  if (const size_place open = launch.open_grid[dimension])
    return b.CreateTrunc(size_at(b, table, *open), b.getInt32Ty());
  return b.getInt32(static_cast<std::uint32_t>(launch.grid[dimension]));
}

void read_open_grid(llvm::CallInst& implicit_arguments, const launch_site& launch, llvm::Value* table) {
  std::vector<std::pair<llvm::Value*, std::int64_t>> pointers{{&implicit_arguments, 0}};
  std::vector<std::pair<llvm::LoadInst*, std::int64_t>> loads;
  while (!pointers.empty()) {
    const auto [pointer, offset] = pointers.back();
    pointers.pop_back();
    for (llvm::User* user : pointer->users()) {
      llvm::APInt further(implicit_arguments.getDataLayout().getIndexTypeSizeInBits(pointer->getType()), 0);
      if (auto* load = llvm::dyn_cast<llvm::LoadInst>(user)) loads.emplace_back(load, offset);
      else if (llvm::isa<llvm::AddrSpaceCastInst, llvm::BitCastInst>(user)) pointers.emplace_back(user, offset);
      else if (auto* step = llvm::dyn_cast<llvm::GEPOperator>(user);
               step && step->accumulateConstantOffset(implicit_arguments.getDataLayout(), further))
        pointers.emplace_back(user, offset + further.getSExtValue());
      else refuse(launch);
    }
  }
  for (const auto& [load, offset] : loads) replace_load(*load, offset, launch, table);
}

}  // namespace kiln::spirv
