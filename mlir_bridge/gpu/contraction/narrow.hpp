// Products of a few rows (decoding, batches of one), which are limited by memory bandwidth. Every weight is read once,
// from global memory directly into the lanes that multiply it. Waves share the depth. Internal to mlir_bridge/gpu.
#pragma once

#include <optional>

#include "mlir_bridge/gpu/contraction/narrow_product_shape.hpp"
#include "mlir_bridge/gpu/contraction/tile_shape.hpp"

namespace kiln::gpu {

// Returns how a product of `rows` rows is divided (of an open number: a sample); nullopt for too many rows, a short
// depth, or a B with scattered rows.
std::optional<narrow_product_shape> find_narrow(kernel_emitter& e, const contraction_problem& problem,
                                                std::int64_t rows);
// Estimates the cycles until the last workgroup has finished.
double narrow_cost(const kernel_emitter& e, const contraction_problem& problem, const narrow_product_shape& shape);
// Emits the stage for at most shape.most_rows() rows.
void emit_narrow(kernel_emitter& e, const contraction_problem& problem, const narrow_product_shape& shape);

// Emits the stage and returns true. Returns false and emits nothing for too many rows, a short depth, or a B with
// scattered rows.
bool try_narrow(kernel_emitter& e, const contraction_problem& problem);
// Returns true if try_narrow() will accept a problem with `second` or `epsilon` once those B that are to be packed are.
bool joins_narrow(const kernel_emitter& e, const contraction_problem& problem);

// Returns the tuning space: "narrow_columns", "narrow_waves" and, on targets with asynchronous copies, "narrow_stages".
// Empty if try_narrow would return false.
std::vector<candidate> narrow_space(kernel_emitter& e, const contraction_problem& problem);

}  // namespace kiln::gpu
