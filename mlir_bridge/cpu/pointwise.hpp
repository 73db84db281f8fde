// Generates elementwise work and data movement: kernels without an anchor, and values that other generators need in
// memory. Internal to mlir_bridge.
#pragma once

#include "mlir_bridge/codegen/pointwise_space.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"

namespace kiln::cpu {

using namespace codegen;

// Computes all outputs of the fusion.
void emit_pointwise(kernel_emitter& e);
std::vector<candidate> pointwise_choices(kernel_emitter& e);
// Computes one value of the fusion into scratch (kernel_emitter::materialize).
void emit_pointwise_into(kernel_emitter& e, value v, const buffer& destination, bool prepare);
// Computes one value of the fusion into a part of a buffer.
void emit_pointwise_parts(kernel_emitter& e, std::vector<map_root> parts, const std::string& name);

}  // namespace kiln::cpu
