#include "mlir_bridge/cpu/finalize.hpp"

#include "ir/ops/contraction.hpp"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "mlir_bridge/back_ends/machine_code.hpp"
#include "mlir_bridge/back_ends/stopwatch.hpp"
#include "mlir_bridge/cpu/anchors.hpp"
#include "mlir_bridge/cpu/lowering.hpp"

namespace kiln {

native_kernel finalize_cpu(portable_kernel kernel, const target_row& target, const kernel_configuration& configuration,
                           finalize_trace* trace) {
  stopwatch time;
  finalize_trace unused;
  finalize_trace& out = trace ? *trace : unused;

  codegen::generation generated = cpu::begin_generation(kernel, target, configuration);
  codegen::kernel_emitter& emitter = *generated.emitter;
  generated.row->emit(emitter);
  mlir::OwningOpRef<mlir::ModuleOp>& code = generated.code;
  out.generate_ms = time.lap();
  if (out.want_texts) out.mlir = printed([&](auto& stream) { code->print(stream); });

  native_kernel result;
  result.launches = emitter.launches();
  result.scratch = emitter.scratch();
  std::vector<std::string> exported;
  for (const launch& l : result.launches) exported.push_back(l.symbol);
  time.lap();
  llvm::LLVMContext llvm_context;
  auto module = cpu::lower_to_llvm(*code, llvm_context, target, exported);
  out.lower_ms = time.lap();
  // Contractions leave small window and K loops to LLVM.
  const instruction* anchor = emitter.anchor();
  bool contraction =
      anchor && (anchor->op().is<dot>() || anchor->op().is<convolution>() || anchor->op().is<transposed_convolution>());
  codegen::optimize(*module, target, contraction);
  out.optimize_ms = time.lap();
  if (out.want_texts) out.llvm_ir = printed([&](auto& stream) { module->print(stream, nullptr); });
  time.lap();
  result.object = codegen::emit_object(*module, target, out.want_texts ? &out.assembly : nullptr);
  out.codegen_ms = time.lap();
  return result;
}

int cpu_pipeline_version() { return 6; }

}  // namespace kiln
