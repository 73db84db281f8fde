#include "mlir_bridge/gpu/last_workgroup.hpp"

namespace kiln::gpu {

void when_last(kernel_emitter& e, workgroup& group, const buffer& counters, Value counter, std::int64_t count,
               Value memory, const std::function<void()>& body) {
  code_builder& code = e.code;
  // A workgroup that sees the count must also see what this workgroup wrote. On NVIDIA, barriers also order global
  // memory and fences are cumulative: a device-wide fence by the counting thread suffices, and the other threads use a
  // cheap fence of workgroup scope. AMD's barrier only orders shared memory, so every thread needs a device-wide fence.
  const bool nvidia = e.target.family == target_family::nvidia;
  const char *device = nvidia ? "device" : "agent", *of_all = nvidia ? "block" : device;
  auto fence = [&](mlir::LLVM::AtomicOrdering order, const char* scope) {
    code.make<mlir::LLVM::FenceOp>(order, scope);
  };
  mlir::Type i32 = code.builder.getI32Type();
  Value address = code.address(e.pointer(counters), counter, element_type::i32);
  fence(mlir::LLVM::AtomicOrdering::release, of_all);
  group.barrier();
  code.when(code.equal(group.thread(), code.constant(0)), [&] {
    if (nvidia) fence(mlir::LLVM::AtomicOrdering::release, device);
    Value before = code.make<mlir::LLVM::AtomicRMWOp>(mlir::LLVM::AtomicBinOp::add, address, code.integer(i32, 1),
                                                      mlir::LLVM::AtomicOrdering::acq_rel, device);
    if (nvidia) fence(mlir::LLVM::AtomicOrdering::acquire, device);
    code.make<mlir::LLVM::StoreOp>(before, memory, 4u);
  });
  group.barrier();
  Value arrived = code.make<mlir::LLVM::LoadOp>(i32, memory, 4u);
  code.when(code.equal(arrived, code.integer(i32, count - 1)), [&] {
    fence(mlir::LLVM::AtomicOrdering::acquire, of_all);
    // Reset the counter for the next run.
    code.when(code.equal(group.thread(), code.constant(0)),
              [&] { code.make<mlir::LLVM::StoreOp>(code.integer(i32, 0), address, 4u); });
    body();
  });
}

}  // namespace kiln::gpu
