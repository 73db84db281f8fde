#include "mlir_bridge/cpu/finalize.hpp"

#include <chrono>

#include "ir/error.hpp"
#include "ir/ops/contraction.hpp"
#include "llvm/Support/raw_ostream.h"
#include "mlir_bridge/cpu/anchors.hpp"
#include "mlir_bridge/cpu/kernel_emitter.hpp"
#include "mlir_bridge/cpu/lowering.hpp"
#include "mlir_bridge/cpu/machine_code.hpp"
#include "mlir_bridge/portable_kernel_impl.hpp"

namespace kiln {

namespace {

class stopwatch {
 public:
  // Milliseconds since construction or the last lap.
  double lap() {
    auto now = std::chrono::steady_clock::now();
    double ms = std::chrono::duration<double, std::milli>(now - start_).count();
    start_ = now;
    return ms;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

template <class Printable>
std::string printed(Printable print) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  print(stream);
  return text;
}

}  // namespace

native_kernel finalize_cpu(portable_kernel kernel, const target_row& target, const kernel_configuration& configuration, finalize_trace* trace) {
  stopwatch time;
  finalize_trace unused;
  finalize_trace& out = trace ? *trace : unused;

  auto cluster = to_cluster(kernel);
  mlir::MLIRContext& context = kernel.impl().context->context;
  mlir::OwningOpRef<mlir::ModuleOp> code = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  cpu::kernel_emitter emitter(*cluster, kernel.symbol(), target, configuration, *code);
  auto generate = emitter.anchor() ? cpu::find_generator(emitter.anchor()->op().name()) : cpu::emit_map;
  generate(emitter);
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
  bool contraction = anchor && (anchor->op().is<dot>() || anchor->op().is<convolution>() || anchor->op().is<transposed_convolution>());
  cpu::optimize(*module, target, contraction);
  out.optimize_ms = time.lap();
  if (out.want_texts) out.llvm_ir = printed([&](auto& stream) { module->print(stream, nullptr); });
  time.lap();
  result.object = cpu::emit_object(*module, target, out.want_texts ? &out.assembly : nullptr);
  out.codegen_ms = time.lap();
  return result;
}

int cpu_pipeline_version() { return 3; }

}  // namespace kiln
