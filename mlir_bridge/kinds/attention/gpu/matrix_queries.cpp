#include "mlir_bridge/kinds/attention/gpu/matrix_queries.hpp"

#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/intrinsics.hpp"

namespace kiln::gpu {

matrix_queries::matrix_queries(kernel_emitter& e, const attention_problem& problem, const lane_layout& lanes,
                               const factor_map& map, workgroup& group, const matrix_attention_shape& shape)
    : e_(e),
      code_(e.code),
      p_(problem),
      lanes_(lanes),
      map_(map),
      group_(group),
      type_(problem.query.type().type),
      stored_(shape.stored_queries),
      whole_(shape.whole_queries) {}

void matrix_queries::read(const attention_problem::place& at, std::span<const Value> rows, Value lane_group,
                          std::int64_t groups) {
  const std::int64_t of_group = lanes_.group_keys / chunk;  // chunks
  if (stored_) memory_ = group_.lds(owners() * stored_chunks() * groups * chunk_bytes, 128);
  for (std::int64_t g = 0; g < groups; ++g) {
    values read;
    for (Value row : rows)
      for (std::int64_t c = 0; c < (map_.whole_row ? of_group : 1); ++c) {
        Value at_chunk = map_.whole_row ? code_.constant(g * of_group + c) : code_.add(lane_group, g * of_group);
        read.push_back(read_chunk(at, row, at_chunk));
      }
    if (!stored_) {
      held_.push_back(in_parts(read));
      continue;
    }
    // All queries at once would take more registers than there are.
    if (g % 4 == 0) schedule_barrier(code_, e_.target.family, passing::nothing);
    std::int64_t number = g * stored_chunks();
    if (whole_) {
      for (Value v : read)
        for (std::int64_t half = 0; half < 2; ++half)
          store_chunk(code_, stored(number++), part_of(code_, v, half * chunk / 2, chunk / 2));
      continue;
    }
    for (const fragment& f : in_parts(read))
      for (Value v : f.chunks) store_chunk(code_, stored(number++), v);
  }
}

std::vector<fragment> matrix_queries::of_group(std::int64_t g) {
  if (!stored_) return held_[static_cast<std::size_t>(g)];
  std::int64_t number = g * stored_chunks();
  if (whole_) {
    const mlir::Type half = code_builder::with_lanes(code_.builder.getF32Type(), chunk / 2);
    values read;
    for (std::int64_t part = 0; part < lanes_.row_parts; ++part, number += 2)
      read.push_back(joined(code_, values{reinterpret(code_, load_chunk(code_, stored(number)), half),
                                          reinterpret(code_, load_chunk(code_, stored(number + 1)), half)}));
    return in_parts(read);
  }
  std::vector<fragment> of_parts(static_cast<std::size_t>(parts_of(type_)));
  for (fragment& f : of_parts)
    for (std::int64_t c = 0; c < chunks_of_lane(); ++c) f.chunks.push_back(load_chunk(code_, stored(number++)));
  return of_parts;
}

Value matrix_queries::stored(std::int64_t number) {
  const Value owner =
      map_.whole_row ? code_.add(code_.mul(group_.wave(), lanes_.row_tile), lanes_.row_of_lane(code_, group_.lane()))
                     : group_.thread();
  Value own = byte_address(code_, memory_, code_.mul(owner, chunk_bytes));
  return byte_address(code_, own, number * owners() * chunk_bytes);
}

Value matrix_queries::read_chunk(const attention_problem::place& at, Value row, Value number) {
  Value depth = code_.mul(number, chunk), inside;
  if (p_.n.depth % lanes_.group_keys)
    inside = code_.less(depth, code_.constant(p_.n.depth)), depth = code_.min(depth, p_.n.depth - chunk);
  return chunk_of(e_, p_.query, p_.of_query(code_, at, row, depth, chunk, chunk), inside);
}

std::vector<fragment> matrix_queries::in_parts(std::span<const Value> chunks) {
  std::vector<fragment> of_parts(static_cast<std::size_t>(parts_of(type_)));
  for (Value v : chunks) {
    const values split = part_chunks(code_, v);
    for (std::size_t i = 0; i < split.size(); ++i) of_parts[i].chunks.push_back(split[i]);
  }
  return of_parts;
}

}  // namespace kiln::gpu
