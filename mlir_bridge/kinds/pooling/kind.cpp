#include "mlir_bridge/kinds/kind.hpp"
#include "mlir_bridge/cpu/choices.hpp"
#include "mlir_bridge/kinds/pooling/generators.hpp"

namespace kiln::kinds {

std::span<const kernel_kind> pooling_kinds() {
  static constexpr kernel_kind rows[]{
      {.operation = "pooling",
       .epilogue = true,
       .operand_reads = {0, 0, 0},
       .cpu = {.emit = cpu::emit_pooling,
               .space = cpu::grain_choices,
               .emit_open = cpu::emit_pooling,
               .opens = cpu::opens_pooling},
       .gpu = {.emit = gpu::emit_pooling,
               .space = gpu::pooling_space,
               .emit_open = gpu::emit_pooling,
               .opens = gpu::opens_pooling}},
  };
  return rows;
}

}  // namespace kiln::kinds
