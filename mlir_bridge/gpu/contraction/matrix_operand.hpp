// A value, or one matrix of it for each batch, as an operand of a contraction. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/contraction/problem.hpp"

namespace kiln::gpu {

struct matrix_place {
  std::vector<dim> batch_sizes;
  dim rows, depth;
  // The layout is [batch..., depth, rows].
  bool depth_first;
};

operand matrix_operand(kernel_emitter& e, value v, element_type factor, matrix_place place);

}  // namespace kiln::gpu
