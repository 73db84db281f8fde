#include "mlir_bridge/kinds/kind.hpp"
#include "mlir_bridge/kinds/recurrent/generators.hpp"

namespace kiln::kinds {

std::span<const kernel_kind> recurrent_kinds() {
  static constexpr kernel_kind rows[]{
      {.operation = "recurrent",
       .operand_reads = {0, 0, 0},
       .cpu = {.emit = cpu::emit_recurrent},
       .gpu = {.emit = gpu::emit_recurrent}},
  };
  return rows;
}

}  // namespace kiln::kinds
