// A product that is computed together with the inner anchors of its fusion (mlir_bridge/kinds/kind.hpp): the
// root-mean-square normalization of its rows, whose scale its end applies to the sums, and a second product of the same
// rows with other weights, whose sums its end combines with those of the first. Internal to mlir_bridge/gpu. Plain
// data.
#pragma once

#include <optional>

#include "mlir_bridge/codegen/kernel_emitter.hpp"

namespace kiln::gpu {

using namespace codegen;

struct joined_product {
  // The operand A. If it is normalized, these are the rows before; the normalized ones are nowhere.
  value rows;
  // sums / sqrt(mean(row²) + epsilon); null if the rows are taken as they are.
  std::optional<double> epsilon;
  // The second product, or null.
  const instruction* second = nullptr;
};

// Returns how the inner anchors of the fusion are computed with its dot; nullopt if there are none, or if one of them
// is of another form, or reads what is not in memory.
std::optional<joined_product> find_joined_product(const kernel_emitter& e);

}  // namespace kiln::gpu
