#include "mlir_bridge/gpu/gpu_codegen_target.hpp"

#include "mlir_bridge/codegen/kernel_emitter.hpp"
#include "mlir_bridge/gpu/device_functions.hpp"
#include "mlir_bridge/gpu/intrinsics.hpp"
#include "mlir_bridge/gpu/pointwise.hpp"

namespace kiln::gpu {
namespace {

// Opens the kernel; its arguments are the buffers. Each thread of the stage gets one work item. The last threads may
// have none.
void open_stage(kernel_emitter& e) {
  auto& code = e.code;
  launch& next = e.current();
  auto function = code.make<mlir::func::FuncOp>(next.symbol, code.builder.getFunctionType({}, {}));
  code.builder.setInsertionPointToStart(function.addEntryBlock());
  e.set_function(function);
  const dim items = next.open_grid.value_or(next.grid);
  next.block = item_threads;
  if (next.open_grid) next.open_grid = (items + item_threads - 1) / item_threads;
  else next.grid = (next.grid + item_threads - 1) / item_threads;
  const intrinsic_names& names = intrinsics(e.target.family);
  mlir::Type i32 = code.builder.getI32Type();
  Value thread = code.to_index(call_intrinsic(code, names.thread, i32)),
        group = code.to_index(call_intrinsic(code, names.workgroup[0], i32));
  Value first = code.add(code.mul(group, item_threads), thread);
  e.set_items(e.min(first, items), e.min(code.add(first, 1), items));
}

void close_stage(kernel_emitter&) {}

constexpr codegen_target make(std::string_view name, int index_bits, unsigned stack_space, unsigned sizes_space,
                              decltype(codegen_target::function) function) {
  codegen_target m;
  m.name = name;
  m.index_bits = index_bits;
  m.global_space = 1;
  m.table_space = 1;
  m.stack_space = stack_space;
  m.sizes_space = sizes_space;
  m.buffer_alignment = 16;
  m.llvm_bf16 = true;
  m.item_operations = 1;
  m.open_stage = open_stage;
  m.close_stage = close_stage;
  m.pointwise_into = emit_pointwise_into;
  m.function = function;
  return m;
}

}  // namespace

const codegen_target& gpu_codegen_target(target_family family, int index_bits) {
  static constexpr codegen_target amd32 = make("AMD GPU", 32, 5, 4, amd_function),
                                  amd64 = make("AMD GPU", 64, 5, 4, amd_function),
                                  nvidia32 = make("NVIDIA GPU", 32, 0, 0, nvidia_function),
                                  nvidia64 = make("NVIDIA GPU", 64, 0, 0, nvidia_function);
  if (family == target_family::amdgpu) return index_bits == 32 ? amd32 : amd64;
  return index_bits == 32 ? nvidia32 : nvidia64;
}

}  // namespace kiln::gpu
