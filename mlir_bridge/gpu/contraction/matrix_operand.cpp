#include "mlir_bridge/gpu/contraction/matrix_operand.hpp"

#include <algorithm>
#include <numeric>

#include "mlir_bridge/codegen/access.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/gpu/contraction/chunk.hpp"

namespace kiln::gpu {

namespace {

// Returns true if elements along `axis` of v are closer together in memory than those along the last axis.
bool contiguous_along(kernel_emitter& e, value v, std::size_t axis) {
  access_analysis access(e, kernel_emitter::sizes(v));
  access.add_root(v);
  const std::size_t last = v.type().rank() - 1;
  return access.transposed_axis().value_or(last) == axis;
}

// Returns how many elements along the last axis to load at a time: as many as 16 bytes hold of the narrowest tensor in
// memory that v is computed from elementwise, if neighbours in that tensor are neighbours in v.
std::int64_t elements_at_once(const kernel_emitter& e, value v) {
  if (auto memory = e.in_memory(v)) return chunk_bytes * 8 / storage_bits(memory->type);
  std::int64_t most = 1;
  for (value input : v.producer->inputs())
    if (input.type().elements() == v.type().elements()) most = std::max(most, elements_at_once(e, input));
  return std::gcd(most, e.factor(kernel_emitter::sizes(v).back()));
}

}  // namespace

operand matrix_operand(kernel_emitter& e, value v, element_type factor, matrix_place place) {
  operand result;
  result.rows = place.rows, result.depth = place.depth;
  result.type = v.type().type;
  const std::size_t rank = place.batch_sizes.size() + 2, depth_axis = place.depth_first ? rank - 2 : rank - 1;
  result.along_rows = place.rows != 1 && place.rows != 0 && !contiguous_along(e, v, depth_axis);
  const std::int64_t chunk = elements_of_chunk(factor);
  const bool in_memory = result.along_rows || e.in_memory(v).has_value();
  result.piece = std::gcd(e.factor(place.depth), in_memory ? chunk : std::max(chunk, elements_at_once(e, v)));
  result.find = [&e, v, place, most = std::min(result.piece, chunk)](evaluator& ev, const element_request& at) {
    code_builder& code = e.code;
    const std::int64_t piece = std::max(most, at.lanes);
    found_elements found;
    Value first = code.add(at.k_tile, at.k_inner);
    std::int64_t shift = at.offset;
    if (at.beyond) {
      // All elements of a piece are on the same side of the end.
      Value begin = code.add(first, at.offset / piece * piece);
      shift = at.offset % piece;
      found.inside = code.less(begin, e.size(place.depth));
      first = e.min(begin, place.depth - piece);
    }
    Value k = code.add(first, shift);
    position where;
    values batch = e.delinearize(at.batch, place.batch_sizes);
    for (std::size_t i = 0; i < batch.size(); ++i)
      where.push_back(axis_at(batch[i], 0, known_bound(place.batch_sizes[i]), 1));
    axis_index row = axis_at(e.min(at.row, place.rows - 1), 0, known_bound(place.rows), 1);
    axis_index depth = axis_at(k, 0, known_bound(place.depth), std::gcd(piece, shift), at.lanes > 1 ? 1 : 0);
    where.push_back(place.depth_first ? depth : row);
    where.push_back(place.depth_first ? row : depth);
    found.elements = ev.at(v, where, at.lanes);
    return found;
  };
  return result;
}

}  // namespace kiln::gpu
