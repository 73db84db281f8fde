#include "mlir_bridge/kinds/kind.hpp"
#include "ir/normalized_window.hpp"
#include "mlir_bridge/kinds/normalize/generators.hpp"

namespace kiln::kinds {

namespace {

// A kernel that also computes the window before the normalization serves any number of images as a row kernel.
bool reads_memory(const instruction& anchor) { return !find_normalized_window(anchor); }

}  // namespace

std::span<const kernel_kind> normalize_kinds() {
  static constexpr kernel_kind rows[]{
      {.operation = "normalize",
       .epilogue = true,
       .operand_reads = {3, 3, 3},
       .cpu = {.emit = cpu::emit_normalize,
               .space = cpu::normalize_space,
               .emit_open = cpu::emit_open_normalize,
               .opens = reads_memory},
       .gpu = {.emit = gpu::emit_normalize, .space = gpu::normalize_space, .emit_open = gpu::emit_normalize}},
  };
  return rows;
}

}  // namespace kiln::kinds
