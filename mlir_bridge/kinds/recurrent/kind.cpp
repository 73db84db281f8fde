#include "mlir_bridge/kinds/kind.hpp"
#include "mlir_bridge/kinds/recurrent/generators.hpp"

namespace kiln::kinds {

namespace {

bool opens_recurrent(const instruction& anchor) { return anchor.inputs()[1].type().is_static(); }

}  // namespace

std::span<const kernel_kind> recurrent_kinds() {
  static constexpr kernel_kind rows[]{
      {.operation = "recurrent",
       .operand_reads = {0, 0, 0},
       .cpu = {.emit = cpu::emit_recurrent, .emit_open = cpu::emit_recurrent, .opens = opens_recurrent},
       .gpu = {.emit = gpu::emit_recurrent, .emit_open = gpu::emit_recurrent, .opens = opens_recurrent}},
  };
  return rows;
}

}  // namespace kiln::kinds
