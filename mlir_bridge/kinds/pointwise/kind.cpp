// Fusions without an anchor: elementwise work and data movement. Their generators are cpu/map and gpu/map, which other
// generators use to bring a value into memory.
#include "mlir_bridge/kinds/kind.hpp"
#include "mlir_bridge/cpu/map.hpp"
#include "mlir_bridge/gpu/map.hpp"

namespace kiln::kinds {

std::span<const kernel_kind> pointwise_kinds() {
  static constexpr kernel_kind rows[]{
      {.operation = "",
       .epilogue = false,
       .operand_reads = {0, 0, 0},
       .cpu = {.emit = cpu::emit_map, .space = cpu::map_choices},
       .gpu = {.emit = gpu::emit_map, .space = gpu::map_choices}},
  };
  return rows;
}

}  // namespace kiln::kinds
