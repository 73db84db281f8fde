// One chunk of an operand from global memory into registers, as it lies in shared memory. Internal to mlir_bridge/gpu.
#pragma once

#include <vector>

#include "mlir_bridge/gpu/contraction/problem.hpp"

namespace kiln::gpu {

// Parts of a chunk, and where they count. What masks them is applied late: until then nothing waits for the loads.
struct gathered_chunk {
  values parts;               // factor type, of equal lanes
  std::vector<Value> inside;  // of each part; null: always
  // The chunk, with zeros outside; `also` (may be null) must hold for all of it.
  Value masked(code_builder& code, Value also = {}) const;
};

// request.k_inner is that of the chunk's first element.
gathered_chunk gather_chunk(kernel_emitter& e, evaluator& ev, const operand& from, element_type factor,
                            element_request request);

// `count` chunks that follow each other along k, of an operand whose pieces hold them: found by one request.
std::vector<gathered_chunk> gather_chunks(kernel_emitter& e, evaluator& ev, const operand& from, element_type factor,
                                          element_request request, std::int64_t count);

// Where the chunk lies in global memory, if it is one aligned piece of a tensor as it stands there: for copies that
// pass registers by. `inside` may be null.
struct chunk_place {
  Value address, inside;
};
std::optional<chunk_place> place_of_chunk(kernel_emitter& e, evaluator& ev, const operand& from, element_type factor,
                                          element_request request);

// Whether all chunks of the operand can be copied so. Tried out in a stage that is thrown away; no stage may be open.
bool is_plain(kernel_emitter& e, const operand& from, element_type factor);

}  // namespace kiln::gpu
