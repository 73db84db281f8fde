#include "mlir_bridge/kinds/kind.hpp"
#include "mlir_bridge/kinds/convolution/generators.hpp"

namespace kiln::kinds {

std::span<const kernel_kind> convolution_kinds() {
  static constexpr kernel_kind rows[]{
      {.operation = "convolution",
       .contraction = true,
       .epilogue = true,
       .operand_reads = {0, 0, 0},
       .cpu = {.emit = cpu::emit_convolution,
               .space = cpu::convolution_space,
               .emit_open = cpu::emit_open_convolution,
               .opens = cpu::opens_convolution},
       .gpu = {.emit = gpu::emit_convolution,
               .space = gpu::convolution_space,
               .emit_open = gpu::emit_open_convolution,
               .opens = gpu::opens_image}},
      {.operation = "transposed_convolution",
       .contraction = true,
       .epilogue = true,
       .operand_reads = {0, 0, 0},
       .cpu = {.emit = cpu::emit_transposed_convolution,
               .space = cpu::transposed_convolution_space,
               .emit_open = cpu::emit_open_transposed_convolution,
               .opens = cpu::opens_transposed_convolution},
       .gpu = {.emit = gpu::emit_transposed_convolution,
               .space = gpu::transposed_convolution_space,
               .emit_open = gpu::emit_transposed_convolution,
               .opens = gpu::opens_image}},
  };
  return rows;
}

}  // namespace kiln::kinds
