// onnxruntime's NGramRepeatBlock, which keeps a search from repeating n-grams.
#include <limits>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// inputs: ids [B, S], scores [B, V]. The score of an id that would repeat an n-gram of the ids becomes -infinity.
std::vector<value> repeated_ngrams(node& n) {
  builder& b = n.b;
  const std::int64_t size = n.integer("ngram_size", 0);
  if (size < 1 || size > 1 << 10 || n.rank(0) != 2 || n.rank(1) != 2)
    invalid("ngram_size " + std::to_string(size) + ", ids " + n.type(0).str() + " and scores " + n.type(1).str() +
            " do not fit");
  b.need_equal(n.dims(0)[0], n.dims(1)[0], "batches of ids and scores");
  const value ids = b.to_type(n.in(0), element_type::i64);
  const dim length = n.dims(0)[1];
  // An id is banned if the ids before it are the last ids of the row.
  const value place = b.iota_like(element_type::i64, {1, length}, 1);
  value banned = b.broadcast_to(b.binary(fn::greater_equal, place, static_cast<double>(size - 1)), n.dims(0));
  for (std::int64_t back = 1; back < size; ++back) {
    auto before = [&](value position) {
      value at = b.binary(fn::max, b.binary(fn::sub, position, static_cast<double>(back)), 0.0);
      return b.add(gather{1}, {ids, b.with_dims(at, {position.type().dims[1]})});
    };
    value same = b.binary(fn::equal, before(place), before(b.with_dims(b.dims_tensor({length}, 0), {1, 1})));
    banned = b.binary(fn::logical_and, banned, same);
  }
  const double infinity = std::numeric_limits<double>::infinity();
  const element_type type = n.type(1).type;
  value limit = b.where(banned, b.scalar(type, -infinity), b.scalar(type, infinity));
  return {b.add(scatter_elements{1, scatter_reduction::min}, {n.in(1), ids, limit})};
}

constexpr operator_row rows[] = {
    {"NGramRepeatBlock", repeated_ngrams, 1, "", microsoft_domain},
};

}  // namespace

std::span<const operator_row> repeated_ngram_operators() { return rows; }

}  // namespace kiln::onnx_import
