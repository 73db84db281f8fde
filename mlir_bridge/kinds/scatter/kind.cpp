#include "mlir_bridge/kinds/kind.hpp"
#include "mlir_bridge/cpu/choices.hpp"
#include "mlir_bridge/kinds/scatter/generators.hpp"

namespace kiln::kinds {

std::span<const kernel_kind> scatter_kinds() {
  static constexpr kernel_kind rows[]{
      {.operation = "scatter_elements",
       .operand_reads = {1, 1, 1},
       .cpu = {.emit = cpu::emit_scatter_elements,
               .space = cpu::grain_choices,
               .emit_open = cpu::emit_scatter_elements},
       .gpu = {.emit = gpu::emit_scatter_elements, .emit_open = gpu::emit_scatter_elements}},
      {.operation = "scatter_nd",
       .operand_reads = {1, 1, 1},
       .cpu = {.emit = cpu::emit_scatter_nd,
               .space = cpu::grain_choices,
               .emit_open = cpu::emit_scatter_nd,
               .opens = cpu::opens_scatter_nd},
       .gpu = {.emit = gpu::emit_scatter_nd, .emit_open = gpu::emit_scatter_nd, .opens = gpu::opens_scatter_nd}},
  };
  return rows;
}

}  // namespace kiln::kinds
