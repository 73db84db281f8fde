#include "mlir_bridge/kinds/kind.hpp"
#include "mlir_bridge/cpu/choices.hpp"
#include "mlir_bridge/kinds/reduce/generators.hpp"

namespace kiln::kinds {

std::span<const kernel_kind> reduce_kinds() {
  static constexpr kernel_kind rows[]{
      {.operation = "reduce",
       .epilogue = true,
       .operand_reads = {1, 1, 1},
       .cpu = {.emit = cpu::emit_reduce, .space = cpu::row_choices, .emit_open = cpu::emit_open_reduce},
       .gpu = {.emit = gpu::emit_reduce, .space = gpu::reduce_space, .emit_open = gpu::emit_open_reduce}},
      {.operation = "arg_reduce",
       .epilogue = true,
       .operand_reads = {1, 1, 1},
       .cpu = {.emit = cpu::emit_arg_reduce, .space = cpu::row_choices, .emit_open = cpu::emit_open_arg_reduce},
       .gpu = {.emit = gpu::emit_arg_reduce, .space = gpu::arg_reduce_space, .emit_open = gpu::emit_arg_reduce}},
  };
  return rows;
}

}  // namespace kiln::kinds
