#include "jit/compile_kernel.hpp"

#include "ir/native_kernel.hpp"
#include "mlir_bridge/finalize.hpp"

namespace kiln {

std::vector<std::byte> compile_specialized(portable_kernel kernel, const target_row& target,
                                           const kernel_configuration& configuration) {
  return serialize(finalize(std::move(kernel), target, configuration));
}

std::vector<std::byte> compile_kernel(portable_kernel kernel, const std::vector<shape>& inputs,
                                      const std::vector<shape>& outputs, const target_row& target,
                                      const kernel_configuration& configuration) {
  kernel.specialize(inputs, outputs);
  return compile_specialized(std::move(kernel), target, configuration);
}

}  // namespace kiln
