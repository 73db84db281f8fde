#include "mlir_bridge/finalize.hpp"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "mlir_bridge/back_ends/native_code.hpp"
#include "mlir_bridge/back_ends/printed.hpp"
#include "mlir_bridge/back_ends/stopwatch.hpp"
#include "mlir_bridge/cpu/lowering.hpp"
#include "mlir_bridge/generation.hpp"
#include "mlir_bridge/gpu/lowering.hpp"

namespace kiln {

native_kernel finalize(portable_kernel kernel, const target_row& target, const kernel_configuration& configuration,
                       finalize_trace* trace) {
  stopwatch time;
  finalize_trace unused;
  finalize_trace& out = trace ? *trace : unused;
  const bool cpu = target.family == target_family::cpu;

  generation generated = begin_generation(kernel, target, configuration);
  generated.emit();
  out.generate_ms = time.lap();
  if (out.want_texts) out.mlir = printed([&](auto& stream) { generated.code->print(stream); });

  native_kernel result;
  result.launches = generated.emitter->launches();
  result.scratch = generated.emitter->scratch();
  result.sizes = generated.emitter->open_sizes();
  result.bounded_sizes = generated.bounded_sizes;
  time.lap();
  llvm::LLVMContext context;
  auto module = cpu ? cpu::lower_to_llvm(*generated.code, context, target, result.launches)
                    : gpu::lower_to_llvm(*generated.code, context, target, result.launches, result.sizes.size());
  out.lower_ms = time.lap();
  make_native(*module, target, loop_optimization::unroll, result, out);
  return result;
}

}  // namespace kiln
