#include "mlir_bridge/back_ends/statistics.hpp"

#include <algorithm>

#include "ir/error.hpp"
#include "mlir_bridge/back_ends/amd/code_object_info.hpp"
#include "mlir_bridge/back_ends/amd/disassembly.hpp"

namespace kiln::gpu {

void add_statistics(native_kernel& kernel, const target_row& target) {
  if (target.family == target_family::nvidia) {
    auto entries = read_ptx({reinterpret_cast<const char*>(kernel.object.data()), kernel.object.size()});
    for (launch& l : kernel.launches) {
      auto found = std::ranges::find(entries, l.symbol, &ptx_entry_info::name);
      if (found == entries.end()) throw error(error_kind::compile_failed, "the PTX has no kernel '" + l.symbol + "'");
      l.statistics.private_bytes = found->local_bytes;
      l.statistics.matrix_instructions = found->mma + found->wgmma;
    }
    return;
  }
  auto kernels = read_code_object(kernel.object);
  for (launch& l : kernel.launches) {
    auto found = std::ranges::find(kernels, l.symbol, &kernel_info::name);
    if (found == kernels.end())
      throw error(error_kind::compile_failed, "the code object has no kernel '" + l.symbol + "'");
    l.statistics = {found->vgprs,
                    found->agprs,
                    found->sgprs,
                    found->vgpr_spills + found->sgpr_spills,
                    found->scratch,
                    found->static_lds,
                    count_matrix_instructions(kernel.object, l.symbol).total()};
    kernel.registers = std::max(kernel.registers, found->vgprs);
    kernel.spills += found->vgpr_spills;
  }
}

}  // namespace kiln::gpu
