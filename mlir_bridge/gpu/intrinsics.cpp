#include "mlir_bridge/gpu/intrinsics.hpp"

#include "mlir_bridge/targets/dependent_launch_text.hpp"

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

void schedule_barrier(code_builder& code, target_family family, passing allowed) {
  if (family != target_family::amdgpu) return;
  constexpr std::int64_t vector = 0x2, scalar = 0x4, transcendental = 0x400;  // LLVM's AMDGPU user guide
  const std::int64_t mask = allowed == passing::arithmetic ? vector | scalar | transcendental : 0;
  call_intrinsic(code, "llvm.amdgcn.sched.barrier", {}, {code.integer(code.builder.getI32Type(), mask)});
}

void keep_loads_in_place(kernel_emitter& e, std::int64_t workgroups) {
  if (e.target.family != target_family::nvidia) return;
  mlir::func::FuncOp function = e.function();
  for (unsigned i = 0; i < function.getNumArguments(); ++i) function.removeArgAttr(i, "llvm.noalias");
  if (workgroups == 0) return;
  const auto text = [&](const std::string& s) { return e.code.builder.getStringAttr(s); };
  const mlir::Attribute least = e.code.builder.getArrayAttr({text("nvvm.minctasm"), text(std::to_string(workgroups))});
  function->setAttr("passthrough", e.code.builder.getArrayAttr(least));
}

namespace {

void emit_ptx(code_builder& code, const std::string& text, const char* constraints, mlir::ValueRange operands) {
  auto dialect = mlir::LLVM::AsmDialectAttr::get(code.builder.getContext(), mlir::LLVM::AsmDialect::AD_ATT);
  code.make<mlir::LLVM::InlineAsmOp>(mlir::Type(), operands, text, constraints, /*has_side_effects=*/true,
                                     /*is_align_stack=*/false, mlir::LLVM::tailcallkind::TailCallKind::None, dialect,
                                     mlir::ArrayAttr());
}

}  // namespace

void issue_loads(kernel_emitter& e) {
  if (!e.target.gpu.dependent_launch) return;
  // The comment tells it from the wait at which the kernel begins (dependent_launch.hpp).
  emit_ptx(e.code, "// the loads before are under way\n" + std::string(wait_for_predecessors), "~{memory}", {});
}

void prefetch(code_builder& code, Value address) { emit_ptx(code, "prefetch.global.L1 [$0];", "l", address); }

}  // namespace kiln::gpu
