#include "mlir_bridge/back_ends/native_code.hpp"

#include <algorithm>

#include "llvm/IR/Module.h"
#include "mlir_bridge/back_ends/back_end.hpp"
#include "mlir_bridge/back_ends/printed.hpp"
#include "mlir_bridge/back_ends/stopwatch.hpp"

namespace kiln {
namespace {

// Stages are named after what they do, and versions of a product for all sizes are stages.
bool is_product(const native_kernel& kernel) {
  const auto open = [](const launch& l) { return !l.prepare && l.open_grid; };
  return std::ranges::count_if(kernel.launches, open) > 1 || std::ranges::any_of(kernel.launches, [](const launch& l) {
           return !l.prepare && l.symbol.ends_with("_product");
         });
}

}  // namespace

const back_end& back_end_of(target_family family) {
  switch (family) {
    case target_family::amdgpu: return amd_back_end;
    case target_family::nvidia: return nvidia_back_end;
    case target_family::cpu: break;
  }
  return cpu_back_end;
}

void make_native(llvm::Module& module, const target_row& target, loop_optimization loops, native_kernel& kernel,
                 finalize_trace& trace) {
  const back_end& end = back_end_of(target.family);
  stopwatch time;
  if (end.before_optimization) end.before_optimization(module, target, kernel.launches);
  codegen::optimize(module, target, loops,
                    end.short_pipeline || (end.short_pipeline_of_products && is_product(kernel)));
  trace.optimize_ms = time.lap();
  if (trace.want_texts) trace.llvm_ir = printed([&](auto& stream) { module.print(stream, nullptr); });
  time.lap();
  end.emit(module, target, kernel, trace.want_texts ? &trace.assembly : nullptr);
  trace.codegen_ms = time.lap();
  if (end.add_statistics) end.add_statistics(kernel);
}

}  // namespace kiln
