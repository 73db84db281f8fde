#include "mlir_bridge/gpu/finalize.hpp"

#include <algorithm>

#include "ir/error.hpp"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir_bridge/back_ends/amd/link.hpp"
#include "mlir_bridge/back_ends/machine_code.hpp"
#include "mlir_bridge/back_ends/nvidia/early_launch.hpp"
#include "mlir_bridge/back_ends/statistics.hpp"
#include "mlir_bridge/back_ends/stopwatch.hpp"
#include "mlir_bridge/gpu/anchors.hpp"
#include "mlir_bridge/gpu/lowering.hpp"

namespace kiln {

namespace {

std::span<const std::byte> as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.c_str()), text.size() + 1};
}

}  // namespace

native_kernel finalize_gpu(portable_kernel kernel, const target_row& target, const kernel_configuration& configuration,
                           finalize_trace* trace) {
  stopwatch time;
  finalize_trace unused;
  finalize_trace& out = trace ? *trace : unused;

  codegen::generation generated = gpu::begin_generation(kernel, target, configuration);
  codegen::kernel_emitter& emitter = *generated.emitter;
  generated.row->emit(emitter);
  mlir::OwningOpRef<mlir::ModuleOp>& code = generated.code;
  out.generate_ms = time.lap();
  if (out.want_texts) out.mlir = printed([&](auto& stream) { code->print(stream); });

  native_kernel result;
  result.launches = emitter.launches();
  result.scratch = emitter.scratch();
  time.lap();
  llvm::LLVMContext llvm_context;
  auto module = gpu::lower_to_llvm(*code, llvm_context, target, result.launches);
  gpu::begin_early(*module, target, result.launches);
  out.lower_ms = time.lap();
  codegen::optimize(*module, target, /*unroll=*/true);
  out.optimize_ms = time.lap();
  if (out.want_texts) out.llvm_ir = printed([&](auto& stream) { module->print(stream, nullptr); });
  time.lap();
  if (target.family == target_family::nvidia) {
    std::string ptx = codegen::emit_assembly(*module, target);
    result.object.assign(as_bytes(ptx).begin(), as_bytes(ptx).end());
    if (out.want_texts) out.assembly = std::move(ptx);
  } else {
    result.object =
        gpu::link_code_object(codegen::emit_object(*module, target, out.want_texts ? &out.assembly : nullptr));
  }
  out.codegen_ms = time.lap();
  gpu::add_statistics(result, target);
  return result;
}

int gpu_pipeline_version(target_family family) { return family == target_family::amdgpu ? 8 : 7; }

}  // namespace kiln
