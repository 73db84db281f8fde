#include "mlir_bridge/kinds/kind.hpp"
#include "mlir_bridge/kinds/dot/generators.hpp"

namespace kiln::kinds {

std::span<const kernel_kind> dot_kinds() {
  static constexpr kernel_kind rows[]{
      {.operation = "dot",
       .contraction = true,
       .epilogue = true,
       .operand_reads = {0, 0, 0},
       .cpu = {.emit = cpu::emit_dot, .space = cpu::dot_space, .emit_open = cpu::emit_open_dot},
       .gpu = {.emit = gpu::emit_dot, .space = gpu::dot_space, .emit_open = gpu::emit_open_dot, .takes_inner = true}},
  };
  return rows;
}

}  // namespace kiln::kinds
