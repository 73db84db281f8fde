#include "mlir_bridge/gpu/last_workgroup.hpp"

namespace kiln::gpu {

namespace {

// A workgroup that sees the count must also see what this workgroup wrote. On NVIDIA, barriers also order global memory
// and fences are cumulative: a device-wide fence by the counting thread suffices, and the other threads use a cheap
// fence of workgroup scope. AMD's barrier only orders shared memory, so every thread needs a device-wide fence.
struct fence_scopes {
  bool nvidia;
  const char *device, *of_all;
};

fence_scopes scopes(const kernel_emitter& e) {
  const bool nvidia = e.target.family == target_family::nvidia;
  const char* device = nvidia ? "device" : "agent";
  return {nvidia, device, nvidia ? "block" : device};
}

void fence(code_builder& code, mlir::LLVM::AtomicOrdering order, const char* scope) {
  code.make<mlir::LLVM::FenceOp>(order, scope);
}

Value address_of(kernel_emitter& e, const buffer& counters, Value counter) {
  return e.code.address(e.pointer(counters), counter, element_type::i32);
}

Value count_in(kernel_emitter& e, workgroup& group, Value address, Value memory) {
  code_builder& code = e.code;
  const fence_scopes on = scopes(e);
  mlir::Type i32 = code.builder.getI32Type();
  fence(code, mlir::LLVM::AtomicOrdering::release, on.of_all);
  group.barrier();
  code.when(code.equal(group.thread(), code.constant(0)), [&] {
    if (on.nvidia) fence(code, mlir::LLVM::AtomicOrdering::release, on.device);
    Value before = code.make<mlir::LLVM::AtomicRMWOp>(mlir::LLVM::AtomicBinOp::add, address, code.integer(i32, 1),
                                                      mlir::LLVM::AtomicOrdering::acq_rel, on.device);
    if (on.nvidia) fence(code, mlir::LLVM::AtomicOrdering::acquire, on.device);
    code.make<mlir::LLVM::StoreOp>(before, memory, 4u);
  });
  group.barrier();
  return code.make<mlir::LLVM::LoadOp>(i32, memory, 4u);
}

void begin(kernel_emitter& e, workgroup& group, Value address) {
  code_builder& code = e.code;
  fence(code, mlir::LLVM::AtomicOrdering::acquire, scopes(e).of_all);
  // Reset the counter for the next run.
  code.when(code.equal(group.thread(), code.constant(0)),
            [&] { code.make<mlir::LLVM::StoreOp>(code.integer(code.builder.getI32Type(), 0), address, 4u); });
}

}  // namespace

Value count_workgroup(kernel_emitter& e, workgroup& group, const buffer& counters, Value counter, Value memory) {
  return count_in(e, group, address_of(e, counters, counter), memory);
}

void begin_as_last(kernel_emitter& e, workgroup& group, const buffer& counters, Value counter) {
  begin(e, group, address_of(e, counters, counter));
}

void when_last(kernel_emitter& e, workgroup& group, const buffer& counters, Value counter, std::int64_t count,
               Value memory, const std::function<void()>& body) {
  code_builder& code = e.code;
  Value address = address_of(e, counters, counter);
  Value arrived = count_in(e, group, address, memory);
  code.when(code.equal(arrived, code.integer(code.builder.getI32Type(), count - 1)), [&] {
    begin(e, group, address);
    body();
  });
}

}  // namespace kiln::gpu
