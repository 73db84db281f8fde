#include "mlir_bridge/kinds/kind.hpp"
#include "mlir_bridge/cpu/choices.hpp"
#include "mlir_bridge/kinds/cumulative_sum/generators.hpp"

namespace kiln::kinds {

std::span<const kernel_kind> cumulative_sum_kinds() {
  static constexpr kernel_kind rows[]{
      {.operation = "cumulative_sum",
       .epilogue = true,
       .operand_reads = {1, 1, 1},
       .cpu = {.emit = cpu::emit_cumulative_sum,
               .space = cpu::grain_choices,
               .emit_open = cpu::emit_open_cumulative_sum},
       .gpu = {.emit = gpu::emit_cumulative_sum,
               .space = gpu::cumulative_sum_space,
               .emit_open = gpu::emit_cumulative_sum}},
  };
  return rows;
}

}  // namespace kiln::kinds
