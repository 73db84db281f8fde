#include "mlir_bridge/gpu/intrinsics.hpp"

namespace kiln::gpu {

const intrinsic_names& intrinsics(target_family family) {
  static constexpr intrinsic_names amd{
      "llvm.amdgcn.workitem.id.x",
      {"llvm.amdgcn.workgroup.id.x", "llvm.amdgcn.workgroup.id.y", "llvm.amdgcn.workgroup.id.z"}};
  static constexpr intrinsic_names nvidia{
      "llvm.nvvm.read.ptx.sreg.tid.x",
      {"llvm.nvvm.read.ptx.sreg.ctaid.x", "llvm.nvvm.read.ptx.sreg.ctaid.y", "llvm.nvvm.read.ptx.sreg.ctaid.z"}};
  return family == target_family::amdgpu ? amd : nvidia;
}

Value call_intrinsic(code_builder& code, std::string_view name, mlir::Type result, std::span<const Value> operands) {
  mlir::ValueRange arguments(llvm::ArrayRef<Value>(operands.data(), operands.size()));
  auto attribute = code.builder.getStringAttr(llvm::StringRef(name.data(), name.size()));
  if (result) return code.make<mlir::LLVM::CallIntrinsicOp>(result, attribute, arguments).getResult(0);
  code.make<mlir::LLVM::CallIntrinsicOp>(attribute, arguments);
  return {};
}

void schedule_barrier(code_builder& code, target_family family, passing allowed) {
  if (family != target_family::amdgpu) return;
  constexpr std::int64_t vector = 0x2, scalar = 0x4, transcendental = 0x400;  // LLVM's AMDGPU user guide
  const std::int64_t mask = allowed == passing::arithmetic ? vector | scalar | transcendental : 0;
  call_intrinsic(code, "llvm.amdgcn.sched.barrier", {}, {code.integer(code.builder.getI32Type(), mask)});
}

}  // namespace kiln::gpu
