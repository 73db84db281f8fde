// Portable kernel → code of a GPU: a linked code object for AMD, PTX text (with its terminating NUL) for NVIDIA, which
// the driver or ptxas assembles. What the compiler reports of every launch is in its statistics.
#pragma once

#include "mlir_bridge/finalize.hpp"

namespace kiln {

native_kernel finalize_gpu(portable_kernel kernel, const target_row& target, const kernel_configuration& configuration,
                           finalize_trace* trace = nullptr);

int gpu_pipeline_version(target_family family);

}  // namespace kiln
