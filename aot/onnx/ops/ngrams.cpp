// TfIdfVectorizer on numbers: counts how often each n-gram of a list occurs in a row. Tokens between those of an n-gram
// may be skipped.
#include <algorithm>

#include "aot/onnx/operators.hpp"
#include "aot/onnx/ops/text_choice.hpp"
#include "aot/onnx/ops/window.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;
using numbers = std::vector<std::int64_t>;

struct vocabulary {
  // All n-grams concatenated; the offset of the first n-gram of each length; the output column of each n-gram.
  numbers tokens, starts, columns;
  // Number of columns of the result.
  std::int64_t width = 0;
};

vocabulary vocabulary_of(const node& n) {
  if (n.has_attribute("pool_strings")) refuse("attribute pool_strings: strings are not supported, only pool_int64s");
  vocabulary v{n.integers("pool_int64s").value_or(numbers{}), n.integers("ngram_counts").value_or(numbers{}),
               n.integers("ngram_indexes").value_or(numbers{})};
  if (v.tokens.empty() || v.starts.empty() || v.columns.empty())
    invalid("pool_int64s, ngram_counts and ngram_indexes are needed");
  std::int64_t end = static_cast<std::int64_t>(v.tokens.size()), count = 0;
  for (std::size_t i = v.starts.size(); i-- > 0; end = v.starts[i]) {
    const auto length = static_cast<std::int64_t>(i) + 1;
    if (v.starts[i] < 0 || v.starts[i] > end || (end - v.starts[i]) % length)
      invalid("ngram_counts do not divide the tokens into n-grams");
    count += (end - v.starts[i]) / length;
  }
  if (end != 0 || count != static_cast<std::int64_t>(v.columns.size()))
    invalid("ngram_indexes has " + std::to_string(v.columns.size()) + " entries for " + std::to_string(count) +
            " n-grams");
  numbers sorted = v.columns;
  std::ranges::sort(sorted);
  if (sorted.front() < 0 || std::ranges::adjacent_find(sorted) != sorted.end())
    invalid("ngram_indexes are not distinct columns");
  v.width = sorted.back() + 1;
  if (v.width > 1 << 24) invalid("ngram_indexes has column " + std::to_string(sorted.back()));
  return v;
}

// Counts the occurrences of the n-grams of one length in rows i64 [N, tokens]. Returns f32 [N, n-grams].
value occurrences(builder& b, value rows, const numbers& grams, std::int64_t length, std::int64_t most_skipped) {
  const std::int64_t tokens = rows.type().dims.at(1).value(), count = static_cast<std::int64_t>(grams.size()) / length;
  const dim batch = rows.type().dims.at(0);
  value table = b.constant(literal::of<std::int64_t>({element_type::i64, {1, 1, count, length}}, grams));
  value sum = b.broadcast_to(b.scalar(element_type::f32, 0), {batch, count});
  for (std::int64_t skipped = 0; skipped <= (length == 1 ? 0 : most_skipped); ++skipped) {
    const std::int64_t reach = (length - 1) * (skipped + 1), places = tokens - reach;
    if (places < 1) break;
    std::vector<value> each;
    for (std::int64_t i = 0; i < length; ++i)
      each.push_back(b.with_dims(b.slice_axis(rows, 1, i * (skipped + 1), places), {batch, places, 1, 1}));
    value windows = each.size() == 1 ? each[0] : b.add(concat{3}, each);
    value same = b.to_type(b.binary(fn::equal, windows, table), element_type::f32);
    value found = b.reduced(reduction_kind::min, same, {3}, false);
    sum = b.binary(fn::add, sum, b.reduced(reduction_kind::sum, found, {1}, false));
  }
  return sum;
}

std::vector<value> tf_idf(node& n) {
  builder& b = n.b;
  const vocabulary v = vocabulary_of(n);
  const std::int64_t shortest = n.integer("min_gram_length", 1), longest = n.integer("max_gram_length", 1),
                     skipped = n.integer("max_skip_count", 0);
  const std::string mode = one_of(n, "mode", "", {"TF", "IDF", "TFIDF"});
  if (n.rank(0) > 2) invalid("X is " + n.type(0).str() + ", not a row or rows of tokens");
  const bool one_row = n.rank(0) < 2;
  value x = b.to_type(one_row ? b.with_dims(n.in(0), {1, n.type(0).elements()}) : n.in(0), element_type::i64);
  static_dim(x.type().dims.at(1), "the tokens of a row");
  const dim batch = x.type().dims.at(0);
  std::vector<value> counted;
  for (std::size_t i = 0; i < v.starts.size(); ++i) {
    const auto length = static_cast<std::int64_t>(i) + 1;
    auto begin = v.tokens.begin() + v.starts[i],
         end = i + 1 < v.starts.size() ? v.tokens.begin() + v.starts[i + 1] : v.tokens.end();
    if (begin == end) continue;
    const numbers grams(begin, end);
    const dim count = static_cast<std::int64_t>(grams.size()) / length;
    counted.push_back(length < shortest || length > longest
                          ? b.broadcast_to(b.scalar(element_type::f32, 0), {batch, count})
                          : occurrences(b, x, grams, length, skipped));
  }
  // A column without an n-gram reads the column of zeros that is appended here.
  counted.push_back(b.broadcast_to(b.scalar(element_type::f32, 0), {batch, 1}));
  numbers source(static_cast<std::size_t>(v.width), static_cast<std::int64_t>(v.columns.size()));
  for (std::size_t i = 0; i < v.columns.size(); ++i)
    source[static_cast<std::size_t>(v.columns[i])] = static_cast<std::int64_t>(i);
  value result = b.add(gather{1}, {b.add(concat{1}, counted), b.integers(source)});
  if (mode == "IDF") result = b.to_type(b.binary(fn::greater, result, 0.0), element_type::f32);
  if (mode != "TF" && n.has_attribute("weights")) {
    const auto& given = n.attribute("weights")->floats();
    if (given.size() != static_cast<int>(v.columns.size()))
      invalid("weights has " + std::to_string(given.size()) + " entries for " + std::to_string(v.columns.size()) +
              " n-grams");
    std::vector<float> of_column(static_cast<std::size_t>(v.width), 0);
    for (std::size_t i = 0; i < v.columns.size(); ++i)
      of_column[static_cast<std::size_t>(v.columns[i])] = given.Get(static_cast<int>(i));
    result = b.binary(fn::mul, result, b.constant(literal::of<float>({element_type::f32, {v.width}}, of_column)));
  }
  return {one_row ? b.with_dims(result, {v.width}) : result};
}

constexpr operator_row rows[] = {{"TfIdfVectorizer", tf_idf, 9, "numbers; tokens of a row known at import"}};

}  // namespace

std::span<const operator_row> ngram_operators() { return rows; }

}  // namespace kiln::onnx_import
