// Matrix products whose operands have a layout that the tensor copy engine can read: A is [batch, m, k] or [batch, k,
// m], B is [batch, n, k] or [batch, k, n], with rows of a multiple of 16 bytes. Internal to mlir_bridge/gpu; plain
// data.
#pragma once

#include <functional>
#include <optional>

#include "mlir_bridge/codegen/evaluator.hpp"

namespace kiln::gpu {

using namespace codegen;

struct wgmma_operand {
  buffer memory;
  // Rows are m for A and n for B.
  std::int64_t rows = 0, k = 0;
  bool k_inner = true;
  // Elements from one row in memory to the next.
  std::int64_t pitch = 0;
  // Elements from one matrix to the next; 0 if the same matrix serves all batches.
  std::int64_t batch_pitch = 0;
  // The operand (an 8-bit constant) is first copied to whole rows with k innermost.
  bool rearrange = false;
};

struct wgmma_problem {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  wgmma_operand a, b;
  // Returns the position in the result without its last axis, which is n.
  std::function<position(Value batch, Value row)> locate;
};

// Returns the descriptor of boxes of 128 bytes of the inner dimension by `box_rows` of the next one.
tensor_map make_tensor_map(const wgmma_operand& from, std::int64_t batch, std::int64_t box_rows);

// Returns the fusion's anchor as such a product; nullopt if an operand is computed or has another layout. 8-bit
// operands must have k innermost.
std::optional<wgmma_problem> find_dot_problem(kernel_emitter& e);
// For 1x1 convolutions with channels last.
std::optional<wgmma_problem> find_convolution_problem(kernel_emitter& e);
// Emits the stages that rearrange operands, and makes the problem read their results.
void rearrange_operands(kernel_emitter& e, wgmma_problem& problem);

}  // namespace kiln::gpu
