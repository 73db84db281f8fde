#include "harness.hpp"
#include "mlir_bridge/finalize.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"

namespace kiln::test {

native_kernel compile_fusion(const module& fusion, const target_row& row, const kernel_configuration& configuration) {
  static const compiler_context context;
  return finalize(portable_kernel::parse(context, write_kernel(fusion, "kernel")), row, configuration);
}

}  // namespace kiln::test
