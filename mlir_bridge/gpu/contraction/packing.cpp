#include "mlir_bridge/gpu/contraction/packing.hpp"

#include "ir/shared_layout.hpp"
#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/contraction/gather.hpp"
#include "mlir_bridge/gpu/contraction/matrix_operand.hpp"

namespace kiln::gpu {

namespace {

// The depth is padded to a multiple of this many chunks, which is a multiple of every tile's step.
constexpr std::int64_t packed_chunks = 8;

struct matrices {
  const operand& of;
  std::int64_t batch, rows, depth;
  bool constant;
  value weights;  // that they are, or null
};

// The name of the stage. It says what the result is, so that the runtime can share it, if that is a copy of an input.
std::string name_of(const kernel_emitter& e, const matrices& from, element_type factor, std::int64_t pitch) {
  if (!from.constant || !from.weights || from.batch != 1) return "pack";
  const auto memory = e.in_memory(from.weights);
  if (!memory || memory->kind != buffer_kind::input || memory->type != factor) return "pack";
  return "pack" + shared_layout{kiln::name(factor), from.rows, from.depth, pitch, from.of.along_rows}.text();
}

buffer pack(kernel_emitter& e, const matrices& from, element_type factor) {
  const std::int64_t chunk = elements_of_chunk(factor), rows = from.rows, batch = from.batch,
                     depth = ceil_div(from.depth, packed_chunks * chunk) * packed_chunks * chunk;
  const buffer packed = e.add_scratch(factor, {batch, rows, depth}, from.constant);
  // Neighbouring threads read neighbouring rows, because most weights are [depth, rows].
  e.parallel(
      name_of(e, from, factor, depth), {batch, depth / chunk, rows}, 1,
      [&](std::span<const Value> at) {
        code_builder& code = e.code;
        evaluator ev(e);
        element_request request{.batch = at[0],
                                .row = at[2],
                                .k_tile = code.constant(0),
                                .k_inner = code.mul(at[1], chunk),
                                .beyond = depth != from.depth};
        gathered_chunk chunk_of_row = gather_chunk(e, ev, from.of, factor, request);
        Value words = chunk_of_row.masked(code);
        store_chunk(
            code,
            code.address(e.pointer(packed),
                         code.add(code.mul(code.add(code.mul(at[0], rows), at[2]), depth), request.k_inner), factor),
            words);
      },
      from.constant);
  return packed;
}

}  // namespace

buffer pack_weights(kernel_emitter& e, value weights) {
  const std::vector<std::int64_t> sizes = kernel_emitter::dims(weights);
  const element_type type = weights.type().type;
  const operand from = matrix_operand(e, weights, type, {{}, sizes[1], sizes[0], true});
  return pack(e, {from, 1, sizes[1], sizes[0], true, weights}, type);
}

buffer pack_b(kernel_emitter& e, contraction_problem& problem, value weights) {
  const element_type factor = problem.types().factor;
  const matrices from{problem.b,         problem.batch.value(), problem.n.value(),
                      problem.k.value(), problem.b_constant,    weights};
  const buffer packed = pack(e, from, factor);
  const std::int64_t chunk = elements_of_chunk(factor), rows = problem.n.value(), depth = packed.dims().back();
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
  return packed;
}

}  // namespace kiln::gpu
