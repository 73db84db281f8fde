#include "mlir_bridge/kinds/kind.hpp"
#include "mlir_bridge/cpu/choices.hpp"
#include "mlir_bridge/kinds/top_k/generators.hpp"

namespace kiln::kinds {

std::span<const kernel_kind> top_k_kinds() {
  static constexpr kernel_kind rows[]{
      {.operation = "top_k",
       .operand_reads = {1, 0, 0},
       .cpu = {.emit = cpu::emit_top_k, .space = cpu::grain_choices, .emit_open = cpu::emit_top_k},
       .gpu = {.emit = gpu::emit_top_k, .space = gpu::top_k_space, .emit_open = gpu::emit_top_k}},
  };
  return rows;
}

}  // namespace kiln::kinds
