// The axes of a tensor whose elements an anchor combines (reduce, softmax, normalize, arg_reduce), for sizes that may
// be open.
//  * inner: the last axis is combined;
//  * outer: the last axis is kept and is the lane axis, along which vectors run.
#pragma once

#include <span>
#include <vector>

#include "mlir_bridge/codegen/evaluator.hpp"

namespace kiln::codegen {

struct reduction_axes {
  reduction_axes(kernel_emitter& e, value input, const std::vector<std::int64_t>& axes);

  bool inner = true;
  std::vector<std::size_t> kept;  // axes of the parallel index, in order, without the lane axis and axes of extent 1
  std::vector<dim> kept_sizes;
  std::size_t lane_axis = 0;  // where !inner
  dim lane_size = 1;          // inner: of the last combined run; otherwise of the lane axis
  dim count = 1;              // elements combined into one
  // Where !inner: the positions along the lane axis where a concat of the input switches operands.
  std::vector<std::int64_t> cuts;
  std::size_t rank = 0;  // of the input
  // Runs of combined axes: each is iterated as one axis. The function below returns their extents.
  std::vector<std::vector<std::size_t>> runs;
  std::vector<dim> run_sizes;

  // Returns the position of a kept index, with 0 along all other axes.
  position start(code_builder& code, std::span<const Value> at) const;
};

}  // namespace kiln::codegen
