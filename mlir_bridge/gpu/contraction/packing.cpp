#include "mlir_bridge/gpu/contraction/packing.hpp"

#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/contraction/gather.hpp"

namespace kiln::gpu {

void pack_b(kernel_emitter& e, contraction_problem& problem, std::int64_t depth_multiple) {
  const element_type factor = problem.types().factor;
  const std::int64_t chunk = elements_of_chunk(factor), rows = problem.n.value(), batch = problem.batch.value(),
                     depth = ceil_div(problem.k.value(), depth_multiple) * depth_multiple;
  const buffer packed = e.add_scratch(factor, {batch, rows, depth}, problem.b_constant);
  // Neighbouring threads read neighbouring rows, because most weights are [depth, rows].
  e.parallel(
      "pack", {batch, depth / chunk, rows}, 1,
      [&](std::span<const Value> at) {
        code_builder& code = e.code;
        evaluator ev(e);
        element_request request{.batch = at[0],
                                .row = at[2],
                                .k_tile = code.constant(0),
                                .k_inner = code.mul(at[1], chunk),
                                .beyond = dim(depth) != problem.k};
        gathered_chunk chunk_of_row = gather_chunk(e, ev, problem.b, factor, request);
        Value words = chunk_of_row.masked(code);
        store_chunk(
            code,
            code.address(e.pointer(packed),
                         code.add(code.mul(code.add(code.mul(at[0], rows), at[2]), depth), request.k_inner), factor),
            words);
      },
      problem.b_constant);

  operand& b = problem.b;
  b = {};
  b.rows = rows, b.depth = depth;
  b.piece = chunk;
  b.type = factor;
  b.find = [&e, packed, rows, depth, chunk](evaluator&, const element_request& at) {
    code_builder& code = e.code;
    Value row = code.mul(code.add(code.mul(at.batch, rows), code.min(at.row, rows - 1)), depth);
    found_elements found;
    if (at.beyond) {
      Value k = code.add(at.k_tile, at.k_inner);
      found.inside = code.less(k, code.constant(depth));
      row = code.add(row, code.min(k, depth - chunk));
    } else {
      row = code.add(code.add(row, at.k_inner), at.k_tile);
    }
    found.elements = code.load(e.pointer(packed), code.add(row, at.offset), packed.type, at.lanes,
                               at.offset % chunk == 0 ? chunk : 1);
    return found;
  };
}

}  // namespace kiln::gpu
