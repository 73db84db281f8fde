// Generates elementwise work and data movement, divided into workgroups. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/codegen/pointwise_space.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"

namespace kiln::gpu {

using namespace codegen;

// Computes all outputs of a fusion without an anchor.
void emit_pointwise(kernel_emitter& e);
std::vector<candidate> pointwise_choices(kernel_emitter& e);
// Computes one value of the fusion into scratch (kernel_emitter::materialize).
void emit_pointwise_into(kernel_emitter& e, value v, const buffer& destination, bool prepare);
// Computes one value of the fusion into a part of a buffer.
void emit_pointwise_parts(kernel_emitter& e, std::vector<map_root> parts, const std::string& name);

// Emits elementwise work and data movement for a space of open sizes (open_pointwise.cpp).
void emit_open_pointwise(kernel_emitter& e, const pointwise_space& space, const std::string& name, bool prepare);

// The largest power of two that divides all of them, at most `most`.
std::int64_t common_power(std::int64_t most, std::initializer_list<std::int64_t> numbers);
// Returns how many elements of this type one 16-byte access moves.
std::int64_t access_lanes(element_type type);
// Returns a number of threads per workgroup such that `items` threads spread over all compute units: whole waves, 64 to
// 256.
std::int64_t spread_threads(const target_row& target, std::int64_t items);
// Returns "threads" of the configuration if a workgroup can have that many, otherwise `standard`.
std::int64_t configured_threads(const target_row& target, const kernel_configuration& configuration,
                                std::int64_t standard);

// Transposes through tiles in shared memory: loads are contiguous along the run `across`, stores along the last run.
// Returns false and emits nothing if tiles would be mostly empty or do not fit. "tile" (rows and columns: 32, 64 or
// 128) and "threads" of the configuration overrule the choice.
bool emit_transposed(kernel_emitter& e, const pointwise_space& space, std::size_t across, const std::string& name,
                     bool prepare);
// Returns the tuning space of emit_transposed; empty if it would return false.
std::vector<candidate> transposed_space(kernel_emitter& e, const pointwise_space& space, std::size_t across);

}  // namespace kiln::gpu
