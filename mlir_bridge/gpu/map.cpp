// Elementwise work and data movement: every thread computes the elements of one vector of the result.
#include "mlir_bridge/cpu/anchors.hpp"
#include "mlir_bridge/gpu/anchors.hpp"

namespace kiln::gpu {

void emit_map(kernel_emitter& e) { cpu::emit_map(e); }

void emit_map_into(kernel_emitter& e, value v, const buffer& destination, bool prepare) { cpu::emit_map_into(e, v, destination, prepare); }

}  // namespace kiln::gpu
