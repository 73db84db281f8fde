#include "mlir_bridge/kinds/kind.hpp"
#include "mlir_bridge/cpu/choices.hpp"
#include "mlir_bridge/kinds/softmax/generators.hpp"

namespace kiln::kinds {

std::span<const kernel_kind> softmax_kinds() {
  static constexpr kernel_kind rows[]{
      {.operation = "softmax",
       .epilogue = true,
       .operand_reads = {3, 3, 3},
       .cpu = {.emit = cpu::emit_softmax, .space = cpu::row_choices, .emit_open = cpu::emit_open_softmax},
       .gpu = {.emit = gpu::emit_softmax, .space = gpu::softmax_space, .emit_open = gpu::emit_softmax}},
  };
  return rows;
}

}  // namespace kiln::kinds
