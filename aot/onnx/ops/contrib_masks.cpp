// Masks and attributes that onnxruntime's attention operators share.
#include <cmath>
#include <limits>

#include "aot/onnx/ops/contrib_attention.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// Returns the finite number that onnxruntime adds to the scores of keys hidden by a causal mask.
double lowest(element_type type) { return type == element_type::f16 ? -65504 : -std::numeric_limits<float>::max(); }

// Converts a padding mask to an f32 addend for the scores that broadcasts to [B, N, S, T]: 0 for a valid key, `fill`
// for a padding key. The dims of the mask determine its form: [B, T], [B, S, T], [B, 1, positions, positions], end
// positions of the keys [B], or end and start positions [2*B].
value padding_scores(node& n, value mask, const dim& batch, const dim& queries, const dim& keys, double fill) {
  builder& b = n.b;
  const auto dims = mask.type().dims;
  auto added = [&](value kept) {
    return b.where(kept, b.scalar(element_type::f32, 0), b.scalar(element_type::f32, fill));
  };
  const std::string misfit = "the mask " + mask.type().str() + " does not fit the attention";
  if (dims.size() == 2) {
    b.need_equal(dims.at(1), keys, misfit);
    return added(b.binary(fn::greater, b.with_dims(mask, {dims.at(0), 1, 1, keys}), 0.0));
  }
  if (dims.size() == 3) {
    b.need_equal(dims.at(1), queries, misfit);
    b.need_equal(dims.at(2), keys, misfit);
    return added(b.binary(fn::greater, b.with_dims(mask, {dims.at(0), 1, queries, keys}), 0.0));
  }
  // Lengths of packed sequences: the key lengths, then cumulative sums, which only a kernel for packed tokens needs.
  if (dims.size() == 1) {
    const bool packed = dims.at(0) == batch * dim(3) + dim(2), starts = dims.at(0) == batch * dim(2);
    if (!packed && !starts) b.need_equal(dims.at(0), batch, misfit);
    value key = b.iota_like(mask.type().type, {keys}, 0);
    if (starts && !batch.is_static())
      refuse("a mask of starts and ends needs a number for dimension '" + batch.str() +
             "'; give it a value with --dim");
    auto bounds = [&](std::int64_t part) {
      value own = !packed && !starts ? mask : b.slice_axis(mask, 0, part ? part * batch.value() : 0, batch);
      return b.with_dims(own, {batch, 1, 1, 1});
    };
    value kept = b.binary(fn::less, key, bounds(0));
    if (starts) kept = b.binary(fn::logical_and, kept, b.binary(fn::greater_equal, key, bounds(1)));
    return added(kept);
  }
  // Megatron's form: a triangular mask for the maximum sequence length. Only the rows after the past are used.
  if (dims.size() == 4) {
    value own = b.slice_from(b.slice_from(mask, 2, keys - queries, queries, 1), 3, dim(0), keys, 1);
    return added(b.binary(fn::greater, own, 0.0));
  }
  refuse("a mask " + mask.type().str() +
         " is not supported, only [batch], [2*batch], [3*batch+2], [batch, keys], [batch, queries, keys] and "
         "[batch, 1, positions, positions]");
}

}  // namespace

void add_masks(node& n, attention_problem& p, std::size_t padding, std::size_t bias, bool causal, double fill) {
  builder& b = n.b;
  const auto q = p.query.type().dims;
  const dim keys = p.key.type().dims.at(2);
  if (n.has(padding)) p.mask = padding_scores(n, n.in(padding), q[0], q[2], keys, fill);
  if (causal && p.mask) {
    value key = b.iota_like(element_type::i64, {q[2], keys}, 1),
          place = b.iota_like(element_type::i64, {q[2], keys}, 0);
    value seen = b.binary(fn::less_equal, b.binary(fn::sub, key, place), b.dims_tensor({keys - q[2]}, 0));
    p.mask = b.where(seen, p.mask, b.scalar(element_type::f32, lowest(p.query.type().type)));
  } else {
    p.causal = causal;
  }
  if (n.has(bias)) {
    value added = b.to_type(n.in(bias), element_type::f32);
    p.mask = p.mask ? b.binary(fn::add, p.mask, added) : added;
  }
}

double attention_scale(node& n, const dim& depth) {
  double given = n.real("scale", 0);
  if (given != 0) return given;
  if (!depth.is_static()) refuse("the depth of a head must be known");
  return 1 / std::sqrt(static_cast<double>(depth.value()));
}

std::int64_t number_of_heads(node& n, std::string_view attribute) {
  std::int64_t heads = n.integer(attribute, 0);
  if (heads < 1) invalid(std::string(attribute) + " is " + std::to_string(heads));
  return heads;
}

value written_into(builder& b, value buffer, value fresh, value start) {
  const auto dims = buffer.type().dims;
  if (dims.size() != 4 || fresh.type().rank() != 4)
    invalid("keys and values have rank 4, not " + buffer.type().str() + " and " + fresh.type().str());
  const dim rows = fresh.type().dims.at(2);
  if (!dims.at(2).is_static())
    refuse("the size of a shared buffer of keys must be known; fix '" + dims.at(2).str() + "' with --dim");
  value place = b.binary(fn::sub, b.iota_like(element_type::i64, {dims.at(2)}, 0), start);
  value written = b.binary(fn::logical_and, b.binary(fn::greater_equal, place, 0.0),
                           b.binary(fn::less, place, b.dims_tensor({rows}, 0)));
  value index = b.where(written, place, b.scalar(element_type::i64, 0));
  value spread = b.add(gather{2}, {fresh, index});
  return b.where(b.with_dims(written, {1, 1, dims.at(2), 1}), spread, buffer);
}

void see_only_written(builder& b, attention_problem& p, value start, bool causal) {
  const dim queries = p.query.type().dims.at(2), keys = p.key.type().dims.at(2);
  value key = b.iota_like(element_type::i64, {queries, keys}, 1),
        place = b.binary(fn::add, b.iota_like(element_type::i64, {queries, keys}, 0), start),
        end = b.binary(fn::add, start, b.dims_tensor({queries}, 0));
  value seen = causal ? b.binary(fn::less_equal, key, place) : b.binary(fn::less, key, end);
  p.causal = false;
  p.mask = p.mask ? b.where(seen, p.mask, b.scalar(element_type::f32, -std::numeric_limits<double>::infinity())) : seen;
}

}  // namespace kiln::onnx_import
