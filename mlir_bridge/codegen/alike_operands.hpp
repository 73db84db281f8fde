// Operands of a concat that differ only in their address, as in densely connected networks. A loop over them is less
// code than a copy of the code for each: their pointers come from a table (kernel_emitter::pointer_table).
#pragma once

#include <functional>
#include <vector>

#include "mlir_bridge/codegen/kernel_emitter.hpp"

namespace kiln::codegen {

// Returns the buffers of operands [first, last) if all are in memory and have equal types and sizes; otherwise nothing.
std::vector<buffer> alike_operands(const kernel_emitter& e, const instruction& node, std::size_t first,
                                   std::size_t last);

// Indices [low, high) of an axis: `pieces` alike operands, or one operand of any kind.
struct axis_segment {
  std::int64_t low = 0, high = 0, pieces = 1;
  std::int64_t extent() const { return (high - low) / pieces; }  // of one piece
};

// Divides the last axis of the kernel's tensors at `cuts` (access_analysis::cuts). If one concat makes all the cuts,
// runs of alike operands whose extent `suits` are one segment.
std::vector<axis_segment> divide_axis(const kernel_emitter& e, std::int64_t extent,
                                      const std::vector<std::int64_t>& cuts,
                                      const std::function<bool(std::int64_t extent)>& suits);

}  // namespace kiln::codegen
