#include "jit/compile_kernel.hpp"

#include "ir/native_kernel.hpp"
#include "mlir_bridge/finalize.hpp"

namespace kiln {

std::vector<std::byte> compile_kernel(portable_kernel kernel, const std::vector<shape>& inputs, const std::vector<shape>& outputs, const target_row& target, const kernel_configuration& configuration) {
  kernel.specialize(inputs, outputs);
  return serialize(finalize(std::move(kernel), target, configuration));
}

}  // namespace kiln
