// Attention in double precision, one query at a time: scores, softmax, weighted sum of the values.
#include "ir/ops/attention.hpp"

#include <cmath>

#include "ir/reference/parallel.hpp"
#include "ir/reference/scalar_rules.hpp"
#include "ir/reference/tensor.hpp"

namespace kiln {
namespace {

using namespace reference;

// Strides to the element [b, head, position, 0] of a tensor.
struct head_strides {
  head_strides(head_layout layout, std::int64_t heads, std::int64_t positions, std::int64_t depth)
      : batch(heads * positions * depth),
        head(layout == head_layout::heads_first ? positions * depth : depth),
        position(layout == head_layout::heads_first ? depth : heads * depth) {}
  std::int64_t at(std::int64_t b, std::int64_t h, std::int64_t p) const { return b * batch + h * head + p * position; }
  std::int64_t batch, head, position;
};

// The values to add to the scores, in the order [batch..., heads, queries, keys]; empty without a mask.
std::vector<double> added(std::span<const literal> inputs, std::vector<dim> scores) {
  if (inputs.size() < 4) return {};
  std::vector<std::int64_t> dims;
  for (const dim& d : scores) dims.push_back(d.value());
  const shape& type = inputs[3].type();
  auto own = type.static_dims();
  auto own_strides = row_major_strides(own);
  std::vector<std::int64_t> strides(dims.size());
  for (std::size_t i = 0; i < own.size(); ++i) strides[dims.size() - own.size() + i] = own[i] == 1 ? 0 : own_strides[i];
  std::vector<double> values = widened<double>(inputs[3]), result;
  for (std::int64_t offset : offsets(dims, strides)) {
    double mask = values[static_cast<std::size_t>(offset)];
    result.push_back(type.type != element_type::boolean ? mask : mask != 0 ? 0 : -INFINITY);
  }
  return result;
}

void softmax_of(std::span<double> row) {
  double top = -INFINITY, sum = 0;
  for (double x : row) top = larger(top, x);
  for (double& x : row) sum += x = std::exp(x - top);
  for (double& x : row) x /= sum;
}

}  // namespace

std::vector<literal> attention::evaluate(std::span<const literal> inputs) const {
  shape out = output_shapes(*this, inputs)[0];
  const shape &query_type = inputs[0].type(), &key_type = inputs[1].type(), &value_type = inputs[2].type();
  attention_extents n(*this, query_type, key_type, value_type);
  head_strides of_query(query_layout, n.heads, n.queries, n.depth), of_key(key_layout, n.key_heads, n.keys, n.depth),
      of_value(value_layout, n.key_heads, n.keys, n.value_depth),
      of_output(output_layout, n.heads, n.queries, n.value_depth);
  std::vector<dim> score_dims(query_type.dims.begin(), query_type.dims.end() - 3);
  score_dims.insert(score_dims.end(), {n.heads, n.queries, n.keys});
  auto query = widened<double>(inputs[0]), key = widened<double>(inputs[1]), value = widened<double>(inputs[2]),
       mask = added(inputs, score_dims);
  std::vector<double> sums(static_cast<std::size_t>(n.batch * n.heads * n.queries * n.value_depth));
  parallel_for(n.batch * n.heads, n.queries * n.keys * (n.depth + n.value_depth + 16),
               [&](std::int64_t begin, std::int64_t end) {
                 std::vector<double> turned(static_cast<std::size_t>(n.keys * n.depth)),
                     row(static_cast<std::size_t>(n.keys));
                 for (std::int64_t i = begin; i < end; ++i) {
                   std::int64_t b = i / n.heads, head = i % n.heads, key_head = head / (n.heads / n.key_heads);
                   // Transpose the keys, so that the inner loop of the scores runs over keys.
                   for (std::int64_t k = 0; k < n.keys; ++k)
                     for (std::int64_t d = 0; d < n.depth; ++d)
                       turned[static_cast<std::size_t>(d * n.keys + k)] =
                           key[static_cast<std::size_t>(of_key.at(b, key_head, k) + d)];
                   for (std::int64_t q = 0; q < n.queries; ++q) {
                     const double* from = query.data() + of_query.at(b, head, q);
                     std::fill(row.begin(), row.end(), 0);
                     for (std::int64_t d = 0; d < n.depth; ++d)
                       for (std::int64_t k = 0; k < n.keys; ++k)
                         row[static_cast<std::size_t>(k)] += from[d] * turned[static_cast<std::size_t>(d * n.keys + k)];
                     for (std::int64_t k = 0; k < n.keys; ++k) {
                       double& score = row[static_cast<std::size_t>(k)];
                       score *= scale;
                       if (!mask.empty()) score += mask[static_cast<std::size_t>((i * n.queries + q) * n.keys + k)];
                       if (causal && k > q + n.keys - n.queries) score = -INFINITY;
                     }
                     softmax_of(row);
                     double* to = sums.data() + of_output.at(b, head, q);
                     for (std::int64_t k = 0; k < n.keys; ++k)
                       for (std::int64_t d = 0; d < n.value_depth; ++d)
                         to[d] += row[static_cast<std::size_t>(k)] *
                                  value[static_cast<std::size_t>(of_value.at(b, key_head, k) + d)];
                   }
                 }
               });
  return {narrowed(std::move(out), sums)};
}

}  // namespace kiln
