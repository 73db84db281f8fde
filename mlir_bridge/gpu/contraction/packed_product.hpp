// The products of packed weights (packed_weights.hpp) with few rows: the codes are the first factor of the matrix
// instructions, the rows the second one. Internal to mlir_bridge/gpu.
#pragma once

#include <span>

#include "mlir_bridge/gpu/contraction/packed_weights.hpp"
#include "mlir_bridge/gpu/matrix_product.hpp"

namespace kiln::gpu {

// Adds the products of a step of 128 codes, all of one group of each column, times the scales. `codes` has those of
// each tile's parts (factor_map::parts), `rows` the chunks of the lane's row, one for each word of codes, and `sums`
// the lane's sums of each tile.
void add_packed_products(code_builder& code, const matrix_product& product, const matrix_instruction& unit,
                         std::span<const loaded_codes> codes, bool is_signed, std::span<const Value> rows,
                         std::span<Value> sums);

}  // namespace kiln::gpu
