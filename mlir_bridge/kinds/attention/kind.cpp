#include "mlir_bridge/kinds/kind.hpp"
#include "mlir_bridge/kinds/attention/generators.hpp"

namespace kiln::kinds {

std::span<const kernel_kind> attention_kinds() {
  static constexpr kernel_kind rows[]{
      {.operation = "attention",
       .contraction = true,
       .epilogue = true,
       .operand_reads = {1, 1, 0},
       .cpu = {.emit = cpu::emit_attention, .space = cpu::attention_space, .emit_open = cpu::emit_open_attention},
       .gpu = {.emit = gpu::emit_attention,
               .space = gpu::attention_space,
               .emit_open = gpu::emit_open_attention,
               .opens = gpu::opens_attention,
               .takes_inner = true}},
  };
  return rows;
}

}  // namespace kiln::kinds
