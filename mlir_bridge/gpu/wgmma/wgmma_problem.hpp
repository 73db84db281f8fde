// Matrix products whose operands lie in memory so that the tensor copy engine can read them: A is [batch, m, k] or
// [batch, k, m], B is [batch, n, k] or [batch, k, n], in rows of a multiple of 16 bytes. Internal to mlir_bridge/gpu;
// plain data.
#pragma once

#include <functional>
#include <optional>

#include "mlir_bridge/codegen/evaluator.hpp"

namespace kiln::gpu {

using namespace codegen;

struct wgmma_operand {
  buffer memory;
  std::int64_t rows = 0, k = 0;  // rows: m of A, n of B
  bool k_inner = true;
  std::int64_t pitch = 0;        // elements from one row of memory to the next
  std::int64_t batch_pitch = 0;  // elements from one matrix to the next; 0: the same matrix for all
  bool rearrange = false;        // is to be copied first, so that k is inner and rows are whole: an 8-bit constant
};

struct wgmma_problem {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  wgmma_operand a, b;
  // The result's position without its last axis, which is n.
  std::function<position(Value batch, Value row)> locate;
};

// The descriptor of boxes of 128 bytes of the inner dimension by `box_rows` of the next one.
tensor_map make_tensor_map(const wgmma_operand& from, std::int64_t batch, std::int64_t box_rows);

// The fusion's anchor as such a product; none where an operand is computed, or lies otherwise. 8-bit operands must
// have k inner.
std::optional<wgmma_problem> find_dot_problem(kernel_emitter& e);
std::optional<wgmma_problem> find_convolution_problem(kernel_emitter& e);  // 1x1, channels last
// Emits the stages that rearrange operands, and makes the problem read what they write.
void rearrange_operands(kernel_emitter& e, wgmma_problem& problem);

}  // namespace kiln::gpu
