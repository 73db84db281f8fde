// onnxruntime's PagedAttention: sequences of different lengths, whose keys and values lie in pages of a common cache.
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"
#include "aot/onnx/ops/contrib_attention.hpp"
#include "aot/onnx/ops/packed_tokens.hpp"
#include "aot/onnx/ops/quantized_cache.hpp"
#include "aot/onnx/ops/text_choice.hpp"
#include "aot/onnx/ops/window.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

enum input : std::size_t {
  query_,
  key_,
  value_,
  key_cache,
  value_cache,
  cumulative_length,
  past_lengths,
  block_table,
  cosines,
  sines,
  slot_mapping,
  head_sink,
  query_norm,
  key_norm,
  key_scale,
  value_scale,
};

// What the node says about its tokens and pages.
struct pages {
  packed_tokens packed;
  value position;  // i64[T]: of each token in its sequence, with its past
  value total;     // i64[B]: number of keys of each sequence
  value table;     // i64[B, pages of a sequence]
  value slot;      // i64[T]: the row of the cache that holds each token
};

pages pages_of(node& n, const dim& tokens) {
  builder& b = n.b;
  if (n.rank(key_cache) != 4 || n.rank(past_lengths) != 1 || n.rank(block_table) != 2)
    invalid("the cache " + n.type(key_cache).str() + ", past_seqlens " + n.type(past_lengths).str() +
            " and block_table " + n.type(block_table).str() + " do not fit");
  const dim sequences = n.dims(past_lengths)[0], rows = n.dims(key_cache)[1], width = n.dims(block_table)[1];
  b.need_equal(n.dims(block_table)[0], sequences, "sequences of past_seqlens and block_table");
  pages p;
  p.packed = packed_tokens_of(b, tokens, sequences, n.in(cumulative_length));
  const value past = b.to_type(n.in(past_lengths), element_type::i64);
  p.position = b.binary(fn::add, p.packed.place_of, b.add(gather{0}, {past, p.packed.sequence_of}));
  p.total = b.binary(fn::add, past, p.packed.lengths);
  // Entries that no key needs may hold anything.
  p.table = b.to_type(n.in(block_table), element_type::i64);
  p.table = b.binary(fn::min, b.binary(fn::max, p.table, 0.0), b.dims_tensor({n.dims(key_cache)[0] - dim(1)}, 0));
  if (n.has(slot_mapping)) {
    p.slot = b.with_dims(b.to_type(n.in(slot_mapping), element_type::i64), {tokens});
    return p;
  }
  const value room = b.dims_tensor({rows}, 0);
  value entry = b.binary(fn::mul, p.packed.sequence_of, b.dims_tensor({width}, 0));
  entry = b.binary(fn::add, entry, b.binary(fn::div, p.position, room));
  value page = b.add(gather{0}, {b.with_dims(p.table, {sequences * width}), entry});
  p.slot = b.binary(fn::add, b.binary(fn::mul, page, room), b.binary(fn::mod, p.position, room));
  return p;
}

// Writes rows [T, G, H] into their slots of the cache [pages, rows of a page, G, H].
value written(node& n, value cache, value rows, const pages& p) {
  builder& b = n.b;
  const auto dims = cache.type().dims, row = rows.type().dims;
  if (row.size() != 3 || row[1] != dims[2] || row[2] != dims[3])
    invalid("rows of " + rows.type().str() + " do not fit the cache " + cache.type().str());
  const dim slots = dims[0] * dims[1];
  value flat = b.with_dims(cache, {slots, dims[2], dims[3]}), at = p.slot;
  // A slot of -1 stores nothing: a row behind the cache takes it.
  if (n.has(slot_mapping)) {
    flat = b.pad_axis(flat, 0, 0, 1, pad_mode::constant_, 0);
    at = b.where(b.binary(fn::less, at, 0.0), b.dims_tensor({slots}, 0), at);
  }
  flat = b.add(scatter_nd{scatter_reduction::none}, {flat, b.with_dims(at, {p.packed.tokens, 1}), rows});
  if (n.has(slot_mapping)) flat = b.slice_axis(flat, 0, 0, slots);
  return b.with_dims(flat, dims);
}

// Returns the rows that belong to each sequence, [B, G, keys, H].
value rows_of_sequences(builder& b, value cache, const pages& p) {
  const auto dims = cache.type().dims;
  value rows = b.add(gather{0}, {cache, p.table});  // [B, pages of a sequence, rows of a page, G, H]
  const dim sequences = p.packed.sequences, width = p.table.type().dims[1];
  return b.permuted(b.with_dims(rows, {sequences, width * dims[1], dims[2], dims[3]}), {0, 2, 1, 3});
}

// Rotates columns [rotary_offset, rotary_offset + 2 * half) of x [1, T, heads, H].
value rotated_part(node& n, value x, const pages& p) {
  builder& b = n.b;
  const std::int64_t offset = n.integer("rotary_offset", 0),
                     depth = static_dim(x.type().dims[3], "the depth of a head"),
                     half = static_dim(n.dims(cosines).back(), "the columns of cos_cache");
  const value at = b.with_dims(p.position, {1, p.packed.tokens});
  const value cos = rows_at(b, n.in(cosines), at), sin = rows_at(b, n.in(sines), at);
  const bool interleaved = n.integer("rotary_interleaved", 0) != 0;
  if (offset == 0) return rotated(b, x, cos, sin, interleaved);
  if (offset < 0 || offset + 2 * half > depth)
    invalid("rotary_offset " + std::to_string(offset) + " does not fit heads of depth " + std::to_string(depth));
  return b.add(concat{3}, {b.slice_axis(x, 3, 0, offset),
                           rotated(b, b.slice_axis(x, 3, offset, depth - offset), cos, sin, interleaved)});
}

// How a cache is quantized. Its rows are handled as [T, G, 1, H].
std::optional<cache_format> format_of(node& n, std::size_t cache, std::size_t scale, std::string_view side,
                                      std::int64_t heads) {
  const std::string stored_as = n.text(std::string(side) + "_cache_dtype", "");
  if (stored_as == "int4" || stored_as == "float4e2m1")
    refuse(std::string(side) + "_cache_dtype '" + stored_as + "' is not supported; use a cache of 8 bits");
  return cache_format_of(n, cache, scale, std::string(side) + "_quant_type", heads);
}

// inputs: the tokens of all sequences [T, N*H] (or query, key and value concatenated), key, value, the caches
// [pages, rows of a page, G, H], the first token of each sequence, the lengths of their pasts, the pages of each
// sequence, cosines, sines, the slots of the tokens, a sink, the weights of the norms of query and key, the scales of
// the caches. With the layout LATENT there is one cache, and values are the first columns of keys.
// outputs: [T, N*V], the caches with the new rows.
std::vector<value> paged_attention(node& n) {
  builder& b = n.b;
  const std::int64_t heads = number_of_heads(n), key_heads = number_of_heads(n, "kv_num_heads");
  const bool latent = one_of(n, "kv_cache_layout", "SEPARATE", {"SEPARATE", "LATENT"}) == "LATENT";
  if (n.rank(query_) != 2 || heads % key_heads) invalid("the query is " + n.type(query_).str());
  for (std::string_view name : {"qk_rotation", "v_rotation"})
    if (n.text(name, "NONE") != "NONE") refuse("attribute " + std::string(name) + " is not supported");
  const dim tokens = n.dims(query_)[0];
  auto apart = [&](value v, std::int64_t count) {
    return split_heads(b, b.with_dims(v, {1, tokens, v.type().dims.at(1)}), count);
  };
  value query, key, values;
  if (n.has(key_)) {
    query = apart(n.in(query_), heads), key = apart(n.in(key_), key_heads);
    if (!latent) values = apart(n.in(value_), key_heads);
  } else {
    value all = apart(n.in(query_), heads + 2 * key_heads);
    query = b.slice_axis(all, 2, 0, heads), key = b.slice_axis(all, 2, heads, key_heads);
    values = b.slice_axis(all, 2, heads + key_heads, key_heads);
  }
  const pages p = pages_of(n, tokens);
  if (n.has(query_norm) != n.has(key_norm)) invalid("q_norm_weight and k_norm_weight come together");
  if (n.has(query_norm)) {
    const double epsilon = n.real("qk_norm_epsilon", 1e-6);
    query = normalized_heads(b, query, n.in(query_norm), epsilon);
    key = normalized_heads(b, key, n.in(key_norm), epsilon);
  }
  if (n.integer("do_rotary", 0)) {
    if (!n.has(cosines) || !n.has(sines)) invalid("do_rotary=1 needs cosines and sines");
    query = rotated_part(n, query, p), key = rotated_part(n, key, p);
  }
  const element_type type = query.type().type;
  // Stores rows [1, T, G, H] in a cache. Returns the cache, and the rows of each sequence.
  auto kept = [&](value rows, std::size_t cache, const std::optional<cache_format>& format) {
    const auto d = rows.type().dims;
    rows = b.with_dims(rows, {d[1], d[2], 1, d[3]});
    if (format) rows = stored(b, rows, *format);
    value whole = written(n, n.in(cache), b.with_dims(rows, {d[1], d[2], d[3]}), p);
    value own = rows_of_sequences(b, whole, p);
    return std::pair(whole, format ? loaded(b, own, *format, type) : own);
  };
  const auto [keys_after, keys] = kept(key, key_cache, format_of(n, key_cache, key_scale, "k", key_heads));
  value values_after, own_values;
  if (latent) {
    const std::int64_t width = n.integer("v_head_size", 0);
    own_values = width ? b.slice_axis(keys, 3, 0, width) : keys;
  } else {
    std::tie(values_after, own_values) =
        kept(values, value_cache, format_of(n, value_cache, value_scale, "v", key_heads));
  }
  // Each sequence sees all tokens, and of its results those of its own tokens are taken.
  const dim sequences = p.packed.sequences, count = keys.type().dims[2];
  auto of_token = [&](value v) { return b.with_dims(v, {1, 1, tokens, 1}); };
  const value order = b.iota_like(element_type::i64, {count}, 0), place = of_token(p.position);
  value last = b.with_dims(b.binary(fn::sub, p.total, 1.0), {sequences, 1, 1, 1});
  if (n.integer("is_causal", 1)) last = b.binary(fn::min, last, place);
  value seen = b.binary(fn::less_equal, order, last);
  if (const std::int64_t window = n.integer("local_window_size", -1); window >= 0)
    seen = b.binary(fn::logical_and, seen,
                    b.binary(fn::greater, order, b.binary(fn::sub, place, static_cast<double>(window))));
  query = heads_first(b, query);
  const auto q = query.type().dims;
  attention_problem problem{b.broadcast_to(query, {sequences, q[1], q[2], q[3]}), keys, own_values};
  problem.scale = attention_scale(n, q[3]);
  problem.soft_cap = n.real("softcap", 0);
  problem.mask = seen;
  if (n.has(head_sink)) problem.sink = n.in(head_sink);
  value sums = attend(b, problem);  // [B, N, T, V]
  auto one = sums.type().dims;
  one[0] = 1;
  value own = b.broadcast_to(of_token(p.packed.sequence_of), one);
  value result = heads_first(b, b.add(gather_elements{0}, {sums, own}));
  std::vector<value> results{b.with_dims(result, {tokens, one[1] * one[3]})};
  if (n.outputs() > 1) results.push_back(keys_after);
  if (n.outputs() > 2) results.push_back(values_after);
  return results;
}

constexpr operator_row rows[] = {
    {"PagedAttention", paged_attention, 1, "no cache of 4 bits, no rotation of heads", microsoft_domain},
};

}  // namespace

std::span<const operator_row> paged_attention_operators() { return rows; }

}  // namespace kiln::onnx_import
