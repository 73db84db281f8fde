// Fusions without an anchor: elementwise work and data movement. Their generators are cpu/pointwise and gpu/pointwise,
// which other generators use to store a value to memory.
#include "mlir_bridge/kinds/kind.hpp"
#include "mlir_bridge/cpu/pointwise.hpp"
#include "mlir_bridge/gpu/pointwise.hpp"

namespace kiln::kinds {

std::span<const kernel_kind> pointwise_kinds() {
  static constexpr kernel_kind rows[]{
      {.operation = "",
       .epilogue = false,
       .operand_reads = {0, 0, 0},
       .cpu = {.emit = cpu::emit_pointwise, .space = cpu::pointwise_choices, .emit_open = cpu::emit_pointwise},
       .gpu = {.emit = gpu::emit_pointwise, .space = gpu::pointwise_choices, .emit_open = gpu::emit_pointwise}},
  };
  return rows;
}

}  // namespace kiln::kinds
