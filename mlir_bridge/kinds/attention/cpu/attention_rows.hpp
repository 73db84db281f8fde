// Rows of scores of an attention with open lengths: what the generators for many and for few queries
// (open_attention.cpp, few_queries.cpp) have in common. A row is the scores of one query of one head for all keys. It
// is in memory, and its end is padded to whole tiles.
#pragma once

#include "ir/ops/attention.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/codegen/few_rows.hpp"
#include "mlir_bridge/cpu/contraction/open_tile.hpp"
#include "mlir_bridge/kinds/attention/generators.hpp"

namespace kiln::cpu {

class attention_rows {
 public:
  explicit attention_rows(kernel_emitter& emitter);

  // Maps [batch..., head], a position and a depth to the indices of a tensor in this layout.
  static values in_layout(std::span<const Value> head, Value position, Value depth, head_layout layout);

  // Begins a work item: the head [batch..., head], its first query, and the offset of this query's row in the scores.
  void begin(std::span<const Value> head, Value first_row, Value row_count, Value scores_begin);
  // The offset of a score; `row` counts from the first query of the item.
  Value score_offset(Value row, Value column);
  // Converts the scores of a row to exp(score - maximum), with 0 for keys that the query does not see, and stores their
  // sum.
  void make_weights(Value row);
  // Stores sum / (sum of the weights) for `lanes` elements of a query's result.
  void store_result(Value row, Value column, Value sum, std::int64_t lanes);

  kernel_emitter& e;
  code_builder& code;
  const attention& op;
  value query, key, value_, mask{};
  element_type sum_type;
  tile_shape tile;
  std::vector<dim> batch;
  dim heads, key_heads, queries, keys, depth, value_depth;
  dim padded_keys;  // a row of scores
  buffer scores;
  // Of the current work item. `group` is [batch..., key head]; `seen` counts the keys that its queries see.
  values head, group;
  Value first_row, row_count, scores_begin, seen, sums_at;

 private:
  Value keys_seen(Value position);
  Value mask_at(Value row, const axis_index& columns);
  void clamp(axis_index& index, const dim& size);
  Value masked(Value score, Value query_row, Value j, Value numbers);
  Value number(double v, std::int64_t lanes) { return code.number(code.type(sum_type, lanes), v); }
};

// Whether keys and values can be read where they are: their depths are known and nothing prepares them ahead of time.
bool reads_keys_directly(const attention_rows& rows);
// Emits the stage for few queries.
void emit_few_queries(attention_rows& rows);

}  // namespace kiln::cpu
