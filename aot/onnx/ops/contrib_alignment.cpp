// Operators of onnxruntime's domain that align two sequences: DynamicTimeWarping and BifurcationDetector.
#include "aot/onnx/bounded_values.hpp"
#include "aot/onnx/custom.hpp"
#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/contrib.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;

// The cheapest path through a table of costs [M, N] or [1, M, N], as i32 [2, steps].
std::vector<value> dynamic_time_warping(node& n) {
  auto dims = n.dims(0);
  if (dims.size() == 3 && dims[0] == dim(1)) dims.erase(dims.begin());
  if (dims.size() != 2) invalid("costs " + n.type(0).str() + " must be a matrix");
  if (has_bounded_dims(n.type(0))) refuse("costs whose size depends on data");
  auto found = import_kernel(n, "DynamicTimeWarping", {n.b.with_dims(n.in(0), dims)});
  allow_padding(n.owner.state(), found[0]);
  return {shortened(n, found[0], 1, found[1])};
}

// Numbers of the module that is built are i64[1] here.
class suffix_search {
 public:
  // The first `length` elements of `tokens` are searched for in `source`.
  suffix_search(builder& b, value source, value tokens, value length)
      : b_(b), source_(source), tokens_(tokens), length_(length), size_(b.data_of(source.type().dims.at(0))) {}

  // Tries the last n tokens for each n. One match ends the search, and so does none; of several, more tokens may leave
  // one.
  value find(std::int64_t least, std::int64_t most) {
    value result = b_.integers({-1}), searching = b_.with_dims(b_.scalar(element_type::boolean, 1), {1});
    for (std::int64_t n = least; n <= most; ++n) {
      searching = b_.binary(fn::logical_and, searching, b_.binary(fn::greater_equal, length_, static_cast<double>(n)));
      value match = matches(n), any = occurs(match);
      value many =
          b_.binary(fn::greater, b_.reduced(reduction_kind::sum, b_.to_type(match, element_type::i64), {0}, true), 1.0);
      searching = b_.binary(fn::logical_and, searching, any);
      value behind = b_.binary(fn::add, position_of(match), static_cast<double>(n));
      value stays = b_.binary(fn::greater_equal, behind, size_);
      value several = b_.binary(fn::logical_and, many, b_.unary(fn::logical_not, stays));
      value here = b_.where(several, b_.integers({-1}), behind);
      result = b_.where(searching, here, result);
      searching = b_.binary(fn::logical_and, searching, several);
    }
    return result;
  }

 private:
  value occurs(value match) {
    return b_.binary(fn::greater, b_.reduced(reduction_kind::max, b_.to_type(match, element_type::i64), {0}, true),
                     0.0);
  }
  value position_of(value match) {
    return b_.add(arg_reduce{true, 0, true, false}, {b_.to_type(match, element_type::i32)});
  }
  // Where the last n tokens begin in the source.
  value matches(std::int64_t n) {
    const std::vector<dim> dims = source_.type().dims;
    value at = b_.iota_like(element_type::i64, dims, 0);
    value result = b_.binary(fn::less_equal, b_.binary(fn::add, at, static_cast<double>(n)), size_);
    for (std::int64_t k = 0; k < n; ++k) {
      value place = b_.binary(fn::min, b_.binary(fn::add, at, static_cast<double>(k)), b_.binary(fn::sub, size_, 1.0));
      value last = b_.binary(fn::max, b_.binary(fn::add, length_, static_cast<double>(k - n)), 0.0);
      value token = b_.add(gather{0}, {tokens_, last});
      result = b_.binary(fn::logical_and, result, b_.binary(fn::equal, b_.add(gather{0}, {source_, place}), token));
    }
    return result;
  }

  builder& b_;
  value source_, tokens_, length_, size_;
};

// Aggressive decoding: appends the predicted tokens up to the first that is not the source's, and finds where the
// source continues.
std::vector<value> bifurcation(node& n) {
  builder& b = n.b;
  value source = n.in(0), tokens = n.in(1), from = b.with_dims(n.in(2), {1});
  for (std::size_t i = 0; i < 2; ++i)
    if (n.rank(i) != 1) invalid("tokens " + n.type(i).str() + " must be a vector");
  if (has_bounded_dims(n.type(0)) || has_bounded_dims(n.type(1))) refuse("tokens whose number depends on data");
  const std::int64_t least = n.integer("min_ngram_size", 1), most = n.integer("max_ngram_size", 3);
  if (least < 1 || most < least || most > 64)
    invalid("n-grams of " + std::to_string(least) + " to " + std::to_string(most) + " tokens");
  value length = b.data_of(tokens.type().dims[0]), result = tokens;
  if (n.has(3)) {
    value predicted = n.in(3);
    if (n.rank(3) != 1 || has_bounded_dims(predicted.type())) refuse("predicted tokens " + predicted.type().str());
    const dim count = predicted.type().dims[0];
    value at = b.iota_like(element_type::i64, {count}, 0);
    value place =
        b.binary(fn::min, b.binary(fn::add, at, from), b.binary(fn::sub, b.data_of(source.type().dims[0]), 1.0));
    value differs = b.unary(fn::logical_not, b.binary(fn::equal, predicted, b.add(gather{0}, {source, place})));
    value last = b.binary(fn::equal, at, b.binary(fn::sub, b.data_of(count), 1.0));
    value ends = b.to_type(b.binary(fn::logical_or, differs, last), element_type::i32);
    value kept = b.binary(fn::add, b.add(arg_reduce{true, 0, true, false}, {ends}), 1.0);
    length = b.binary(fn::add, length, kept);
    tokens = b.add(concat{0}, {tokens, predicted});
    result = shortened(n, tokens, 0, length, 1);
  }
  return {result, b.with_dims(suffix_search(b, source, tokens, length).find(least, most), {})};
}

constexpr operator_row rows[] = {
    {"DynamicTimeWarping", dynamic_time_warping, 1, "", microsoft_domain},
    {"BifurcationDetector", bifurcation, 1, "", microsoft_domain},
};

}  // namespace

std::span<const operator_row> contrib_alignment_operators() { return rows; }

}  // namespace kiln::onnx_import
