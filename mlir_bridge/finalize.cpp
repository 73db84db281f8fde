#include "mlir_bridge/finalize.hpp"

#include "mlir_bridge/cpu/finalize.hpp"
#include "mlir_bridge/gpu/finalize.hpp"

namespace kiln {

native_kernel finalize(portable_kernel kernel, const target_row& target, const kernel_configuration& configuration,
                       finalize_trace* trace) {
  return target.family == target_family::cpu ? finalize_cpu(std::move(kernel), target, configuration, trace)
                                             : finalize_gpu(std::move(kernel), target, configuration, trace);
}

int pipeline_version(target_family family) {
  return family == target_family::cpu ? cpu_pipeline_version() : gpu_pipeline_version(family);
}

}  // namespace kiln
