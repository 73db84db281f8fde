// The back end for AMD GPUs: code objects, linked by LLD in this process.
#include <algorithm>

#include "ir/error.hpp"
#include "llvm/IR/Module.h"
#include "mlir_bridge/back_ends/amd/code_object_info.hpp"
#include "mlir_bridge/back_ends/amd/disassembly.hpp"
#include "mlir_bridge/back_ends/amd/initialize.hpp"
#include "mlir_bridge/back_ends/amd/link.hpp"
#include "mlir_bridge/back_ends/amd/pinned_instructions.hpp"
#include "mlir_bridge/back_ends/back_end.hpp"
#include "mlir_bridge/back_ends/machine_code.hpp"

namespace kiln {
namespace {

void emit(llvm::Module& module, const target_row& target, native_kernel& kernel, std::string* assembly) {
  kernel.object = gpu::link_code_object(codegen::emit_object(module, target, assembly));
}

void add_statistics(native_kernel& kernel) {
  auto kernels = gpu::read_code_object(kernel.object);
  for (launch& l : kernel.launches) {
    auto found = std::ranges::find(kernels, l.symbol, &gpu::kernel_info::name);
    if (found == kernels.end())
      throw error(error_kind::compile_failed, "the code object has no kernel '" + l.symbol + "'");
    l.statistics = {found->vgprs,
                    found->agprs,
                    found->sgprs,
                    found->vgpr_spills + found->sgpr_spills,
                    found->scratch,
                    found->static_lds,
                    gpu::count_matrix_instructions(kernel.object, l.symbol).total()};
    kernel.registers = std::max(kernel.registers, found->vgprs);
    kernel.spills += found->vgpr_spills;
  }
}

}  // namespace

const back_end amd_back_end{.initialize = gpu::initialize_amd,
                            .aggressive = true,
                            .after_optimization = gpu::pin_matrix_instructions,
                            .emit = emit,
                            .add_statistics = add_statistics};

}  // namespace kiln
