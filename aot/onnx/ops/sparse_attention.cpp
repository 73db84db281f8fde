// onnxruntime's SparseAttention: grouped heads over a buffer of keys, where blocks of keys are hidden from blocks of
// queries by layouts that repeat over the heads (Phi-3-small).
#include <limits>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"
#include "aot/onnx/ops/contrib_attention.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// The layouts as bool[L, blocks, blocks]: whether a block of queries sees a block of keys. Inputs 5 and 6 hold them as
// compressed sparse rows: where the columns of each row begin and end, [L, blocks + 1], and the columns, [L, most].
literal layouts_of(node& n) {
  const literal rows = n.constant(5, "block_row_indices"), columns = n.constant(6, "block_col_indices");
  if (rows.type().rank() != 2 || columns.type().rank() != 2 || rows.type().dims[0] != columns.type().dims[0])
    invalid("block_row_indices " + rows.type().str() + " and block_col_indices " + columns.type().str() +
            " do not fit");
  const std::int64_t layouts = rows.type().dims[0].value(), blocks = rows.type().dims[1].value() - 1,
                     most = columns.type().dims[1].value();
  if (layouts < 1 || blocks < 1) invalid("block_row_indices " + rows.type().str() + " hold no layout");
  std::vector<std::uint8_t> seen(static_cast<std::size_t>(layouts * blocks * blocks), 0);
  for (std::int64_t row = 0; row < layouts * blocks; ++row) {
    const std::int64_t layout = row / blocks, at = row + layout;
    const std::int64_t first = rows.at_int(at), end = rows.at_int(at + 1);
    if (first < 0 || end < first || end > most)
      invalid("block_row_indices go from " + std::to_string(first) + " to " + std::to_string(end) + " of " +
              std::to_string(most) + " columns");
    for (std::int64_t i = first; i < end; ++i) {
      const std::int64_t column = columns.at_int(layout * most + i);
      if (column < 0 || column >= blocks)
        invalid("block_col_indices hold " + std::to_string(column) + " of " + std::to_string(blocks) + " blocks");
      seen[static_cast<std::size_t>(row * blocks + column)] = 1;
    }
  }
  return literal::of<std::uint8_t>({element_type::boolean, {layouts, blocks, blocks}}, seen);
}

// Returns bool[B, heads, S, M]: whether the layout of a head shows the block of a key to the block of a query.
// `places` i64[B, S] are the positions of the queries.
value shown_blocks(node& n, value places, std::int64_t heads, const dim& keys) {
  builder& b = n.b;
  const literal layouts = layouts_of(n);
  const std::int64_t count = layouts.type().dims[0].value(), blocks = layouts.type().dims[1].value(),
                     block = n.integer("sparse_block_size", 0);
  if (block < 1) invalid("sparse_block_size is " + std::to_string(block));
  if (heads % count) invalid(std::to_string(count) + " layouts do not divide " + std::to_string(heads) + " heads");
  auto block_of = [&](value position) {
    return b.binary(fn::min, b.binary(fn::div, position, static_cast<double>(block)), static_cast<double>(blocks - 1));
  };
  const dim batch = places.type().dims[0], queries = places.type().dims[1];
  value rows = b.add(gather{1}, {b.constant(layouts), block_of(places)});  // [L, B, S, blocks]
  value shown = b.add(gather{3}, {rows, block_of(b.iota_like(element_type::i64, {keys}, 0))});
  shown = b.with_dims(b.permuted(shown, {1, 0, 2, 3}), {batch, 1, count, queries, keys});
  return b.with_dims(b.broadcast_to(shown, {batch, heads / count, count, queries, keys}),
                     {batch, heads, queries, keys});
}

// Returns the buffer [B, G, M, H] with the new rows [B, G, S, H] written from position start[B, 1] on.
value written_from(builder& b, value buffer, value fresh, value start) {
  const auto dims = buffer.type().dims;
  const dim rows = fresh.type().dims.at(2);
  value place = b.binary(fn::sub, b.iota_like(element_type::i64, {1, dims.at(2)}, 1), start);
  value written = b.binary(fn::logical_and, b.binary(fn::greater_equal, place, 0.0),
                           b.binary(fn::less, place, b.dims_tensor({rows}, 0)));
  const std::vector<dim> lifted{place.type().dims[0], 1, dims.at(2), 1};
  value index = b.with_dims(b.where(written, place, b.scalar(element_type::i64, 0)), lifted);
  value spread = b.add(gather_elements{2}, {fresh, b.broadcast_to(index, dims)});
  return b.where(b.with_dims(written, lifted), spread, buffer);
}

// inputs: query [B, S, N*H] (or query, key and value concatenated), key, value, the buffers of keys and values
// [B, G, M, H], the rows and columns of the layouts, the largest number of keys, the number of keys of each batch
// entry, cosines, sines. outputs: [B, S, N*H], the buffers with the new keys and values.
std::vector<value> sparse_attention(node& n) {
  builder& b = n.b;
  const std::int64_t heads = number_of_heads(n), key_heads = number_of_heads(n, "kv_num_heads");
  if (heads % key_heads)
    invalid(std::to_string(key_heads) + " heads of keys do not divide " + std::to_string(heads) + " heads");
  if (n.rank(3) != 4 || n.rank(4) != 4)
    invalid("the buffers of keys and values are " + n.type(3).str() + " and " + n.type(4).str() + ", not of rank 4");
  auto [query, key, values] = packed_heads(n, heads, key_heads);
  const dim batch = query.type().dims[0], queries = query.type().dims[1], keys = n.dims(3)[2];
  // A prompt fills the buffers from their start; its shorter entries are padded at their ends.
  value is_prompt =
      b.binary(fn::equal, b.with_dims(b.to_type(n.in(7), element_type::i64), {}), b.dims_tensor({queries}, 0));
  value total = b.with_dims(b.to_type(n.in(8), element_type::i64), {batch, 1});
  value past = b.where(is_prompt, b.scalar(element_type::i64, 0),
                       b.binary(fn::max, b.binary(fn::sub, total, b.dims_tensor({queries}, 0)), 0.0));
  value places = b.binary(fn::add, b.iota_like(element_type::i64, {1, queries}, 1), past);
  if (n.integer("do_rotary", 0)) {
    if (!n.has(9) || !n.has(10)) invalid("do_rotary=1 needs cosines and sines");
    const bool interleaved = n.integer("rotary_interleaved", 0) != 0;
    value cosines = rows_at(b, n.in(9), places), sines = rows_at(b, n.in(10), places);
    query = rotated(b, query, cosines, sines, interleaved);
    key = rotated(b, key, cosines, sines, interleaved);
  }
  attention_problem p{heads_first(b, query), written_from(b, n.in(3), heads_first(b, key), past),
                      written_from(b, n.in(4), heads_first(b, values), past)};
  p.scale = attention_scale(n, query.type().dims.at(3));
  value seen =
      b.binary(fn::less_equal, b.iota_like(element_type::i64, {keys}, 0), b.with_dims(places, {batch, 1, queries, 1}));
  p.mask = b.binary(fn::logical_and, seen, shown_blocks(n, places, heads, keys));
  return {join_heads(b, heads_first(b, attend(b, p))), p.key, p.values};
}

constexpr operator_row rows[] = {
    {"SparseAttention", sparse_attention, 1, "layouts known at import", microsoft_domain},
};

}  // namespace

std::span<const operator_row> sparse_attention_operators() { return rows; }

}  // namespace kiln::onnx_import
