// Loads one chunk of an operand from global memory into registers, in the layout of shared memory. Internal to
// mlir_bridge/gpu.
#pragma once

#include <vector>

#include "mlir_bridge/gpu/contraction/problem.hpp"

namespace kiln::gpu {

// The parts of a chunk, and the conditions under which they are valid. Masking is applied late, because it would wait
// for the loads.
struct gathered_chunk {
  // In the factor's type; all parts have the same number of lanes.
  values parts;
  // Condition for each part; null means always valid.
  std::vector<Value> inside;
  // Returns the chunk with zeros where it is invalid. If `also` is not null, the whole chunk is valid only if it is
  // true.
  Value masked(code_builder& code, Value also = {}) const;
};

// `request.k_inner` is that of the chunk's first element.
gathered_chunk gather_chunk(kernel_emitter& e, evaluator& ev, const operand& from, element_type factor,
                            element_request request);

// Loads `count` chunks that are consecutive along k with one request. A piece of the operand must hold all of them.
std::vector<gathered_chunk> gather_chunks(kernel_emitter& e, evaluator& ev, const operand& from, element_type factor,
                                          element_request request, std::int64_t count);

// The address of a chunk that is one aligned piece of a tensor in global memory, so that it can be copied without
// registers. `inside` may be null.
struct chunk_place {
  Value address, inside;
};
std::optional<chunk_place> place_of_chunk(kernel_emitter& e, evaluator& ev, const operand& from, element_type factor,
                                          element_request request);

// Returns true if all chunks of the operand can be copied this way. Emits a temporary stage to find out; no stage may
// be open.
bool is_plain(kernel_emitter& e, const operand& from, element_type factor);

}  // namespace kiln::gpu
