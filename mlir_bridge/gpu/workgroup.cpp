#include "mlir_bridge/gpu/workgroup.hpp"

#include <algorithm>
#include <string>

#include "ir/error.hpp"
#include "mlir_bridge/gpu/intrinsics.hpp"

namespace kiln::gpu {

workgroup::workgroup(kernel_emitter& e, const std::string& name, std::array<std::int64_t, 3> grid, std::int64_t threads, bool prepare)
    : e_(e), code_(e.code), threads_(threads) {
  const gpu_row& row = e.target.gpu;
  if (threads < 1 || threads > row.max_threads || threads % row.wave)
    throw error(error_kind::unsupported, "target '" + e.target.name + "' has no workgroups of " + std::to_string(threads) + " threads");
  e.begin_stage(name, 1, prepare);
  launch& next = e.current();
  next.grid = grid[0], next.grid_y = grid[1], next.grid_z = grid[2];
  next.block = threads;
  const intrinsic_names& names = intrinsics(e.target.family);
  mlir::Type i32 = code_.builder.getI32Type();
  thread_ = code_.to_index(call_intrinsic(code_, names.thread, i32));
  for (std::size_t axis = 0; axis < 3; ++axis) block_[axis] = grid[axis] == 1 ? code_.constant(0) : code_.to_index(call_intrinsic(code_, names.workgroup[axis], i32));
  lane_ = code_.rem(thread_, row.wave);
  wave_ = threads == row.wave ? code_.constant(0) : code_.div(thread_, row.wave);
  if (e.target.family == target_family::amdgpu && threads != row.wave) {
    // All lanes have the same number, which the compiler does not see by itself.
    Value first = call_intrinsic(code_, "llvm.amdgcn.readfirstlane", i32, {code_.on.index_bits == 32 ? wave_ : code_.make<mlir::arith::TruncIOp>(i32, wave_).getResult()});
    wave_ = code_.to_index(first);
  }
  // The size is set at the end; on NVIDIA, and so that large regions need no declaration, the memory is given at launch.
  mlir::OpBuilder::InsertionGuard guard(code_.builder);
  code_.builder.setInsertionPointToStart(e.generated().getBody());
  auto bytes = mlir::LLVM::LLVMArrayType::get(code_.builder.getI8Type(), 0);
  shared_ = code_.make<mlir::LLVM::GlobalOp>(bytes, /*isConstant=*/false, mlir::LLVM::Linkage::External, next.symbol + "_lds", mlir::Attribute(), /*alignment=*/1024, lds_space);
}

void workgroup::close() {
  if (most_ > e_.target.gpu.lds_bytes)
    throw error(error_kind::unsupported, "kernel '" + e_.symbol + "' needs " + std::to_string(most_) + " bytes of shared memory, target '" + e_.target.name + "' has " + std::to_string(e_.target.gpu.lds_bytes));
  if (e_.target.family == target_family::amdgpu && most_ > 0) {
    // Declared in full, so that the compiler knows how many workgroups share a compute unit.
    shared_.setGlobalType(mlir::LLVM::LLVMArrayType::get(code_.builder.getI8Type(), static_cast<unsigned>(most_)));
    shared_.setLinkage(mlir::LLVM::Linkage::Internal);
    mlir::OpBuilder::InsertionGuard guard(code_.builder);
    code_.builder.createBlock(&shared_.getInitializerRegion());
    code_.make<mlir::LLVM::ReturnOp>(code_.make<mlir::LLVM::UndefOp>(shared_.getGlobalType()).getResult());
  } else {
    e_.current().lds_bytes = most_;
  }
  if (most_ == 0) shared_.erase();
  e_.end_stage();
}

Value workgroup::lds(std::int64_t bytes, std::int64_t alignment) {
  used_ = (used_ + alignment - 1) / alignment * alignment;
  std::int64_t at = used_;
  used_ += bytes;
  most_ = std::max(most_, used_);
  return lds_at(at);
}

Value workgroup::lds_at(std::int64_t offset) {
  Value base = code_.make<mlir::LLVM::AddressOfOp>(shared_);
  if (offset == 0) return base;
  return code_.make<mlir::LLVM::GEPOp>(base.getType(), code_.builder.getI8Type(), base, llvm::ArrayRef<mlir::LLVM::GEPArg>{static_cast<std::int32_t>(offset)}, mlir::LLVM::GEPNoWrapFlags::inbounds);
}

void workgroup::barrier() {
  if (e_.target.family == target_family::nvidia) {
    call_intrinsic(code_, "llvm.nvvm.barrier.cta.sync.aligned.all", {}, {code_.make<mlir::arith::ConstantOp>(code_.builder.getI32IntegerAttr(0)).getResult()});
    return;
  }
  // Fences over shared memory alone (LLVM's AMDGPU memory model, "MMRA"): global loads in flight stay in flight.
  mlir::MLIRContext* context = code_.builder.getContext();
  auto local = mlir::LLVM::MMRATagAttr::get(context, "amdgpu-synchronize-as", "local");
  auto fence = [&](mlir::LLVM::AtomicOrdering order) {
    auto op = code_.make<mlir::LLVM::FenceOp>(order, "workgroup");
    op->setDiscardableAttr(mlir::LLVM::LLVMDialect::getMmraAttrName(), local);
  };
  fence(mlir::LLVM::AtomicOrdering::release);
  call_intrinsic(code_, "llvm.amdgcn.s.barrier", {});
  fence(mlir::LLVM::AtomicOrdering::acquire);
}

Value workgroup::shuffle_xor(Value v, std::int64_t mask) {
  mlir::Type i32 = code_.builder.getI32Type(), type = v.getType();
  Value bits = type == i32 ? v : code_.make<mlir::arith::BitcastOp>(i32, v).getResult();
  auto number = [&](std::int64_t n) { return code_.integer(i32, n); };
  Value other;
  if (e_.target.family == target_family::nvidia) {
    other = call_intrinsic(code_, "llvm.nvvm.shfl.sync.bfly.i32", i32, {number(-1), bits, number(mask), number(31)});
  } else {
    Value lane = code_.on.index_bits == 32 ? lane_ : code_.make<mlir::arith::TruncIOp>(i32, lane_).getResult();
    Value address = code_.mul(code_.make<mlir::arith::XOrIOp>(lane, number(mask)).getResult(), 4);
    other = call_intrinsic(code_, "llvm.amdgcn.ds.bpermute", i32, {address, bits});
  }
  return type == i32 ? other : code_.make<mlir::arith::BitcastOp>(type, other).getResult();
}

Value workgroup::reduce_wave(Value v, const combiner& combine, std::int64_t width) {
  for (std::int64_t mask = (width ? width : wave_size()) / 2; mask > 0; mask /= 2) v = combine(v, shuffle_xor(v, mask));
  return v;
}

Value workgroup::reduce(Value v, const combiner& combine) {
  v = reduce_wave(v, combine);
  if (waves() == 1) return v;
  element_type type = v.getType().isF32() ? element_type::f32 : element_type::i32;
  Value slots = lds(waves() * 4);
  code_.when(code_.equal(lane_, code_.constant(0)), [&] { code_.store(slots, wave_, type, v); });
  barrier();
  Value all = code_.load(slots, code_.constant(0), type, 1);
  for (std::int64_t i = 1; i < waves(); ++i) all = combine(all, code_.load(slots, code_.constant(i), type, 1));
  barrier();
  return all;
}

}  // namespace kiln::gpu
