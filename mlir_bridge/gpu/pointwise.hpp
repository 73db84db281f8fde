// Elementwise work and data movement, cut into workgroups. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/codegen/pointwise_space.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"

namespace kiln::gpu {

using namespace codegen;

// All outputs of a fusion without an anchor.
void emit_pointwise(kernel_emitter& e);
std::vector<candidate> pointwise_choices(kernel_emitter& e);
// The same for one value of the fusion, into scratch (kernel_emitter::materialize).
void emit_pointwise_into(kernel_emitter& e, value v, const buffer& destination, bool prepare);

// The same for a space of open sizes (open_pointwise.cpp).
void emit_open_pointwise(kernel_emitter& e, const pointwise_space& space, const std::string& name, bool prepare);

// The largest power of two that divides all of them, at most `most`.
std::int64_t common_power(std::int64_t most, std::initializer_list<std::int64_t> numbers);
// Elements of this type in one 16-byte access.
std::int64_t access_lanes(element_type type);
// Threads of a workgroup so that `items` threads spread over all compute units: whole waves, 64 to 256.
std::int64_t spread_threads(const target_row& target, std::int64_t items);
// The configuration's "threads" where a workgroup can have as many, else `standard`.
std::int64_t configured_threads(const target_row& target, const kernel_configuration& configuration,
                                std::int64_t standard);

// Tiles through shared memory for a space whose run `across` is walked contiguously by a load, the last run by the
// stores. False, and nothing emitted, where tiles would be mostly empty or do not fit. The configuration's "tile" (rows
// and columns: 32, 64 or 128) and "threads" overrule the choice.
bool emit_transposed(kernel_emitter& e, const pointwise_space& space, std::size_t across, const std::string& name,
                     bool prepare);
// What a tuner may vary of it; empty where it emits nothing.
std::vector<candidate> transposed_space(kernel_emitter& e, const pointwise_space& space, std::size_t across);

}  // namespace kiln::gpu
