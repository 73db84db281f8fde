// attention on GPUs: a workgroup does a tile of query rows of one head of keys against all keys, with an online softmax
// (Milakov and Gimelshein, "Online normalizer calculation for softmax"; the loop order is that of Dao et al.,
// "FlashAttention"). Internal to mlir_bridge/gpu.
#pragma once

#include <optional>

#include "ir/ops/attention.hpp"
#include "ir/prefix_mask.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"
#include "mlir_bridge/gpu/matrix_instruction.hpp"
#include "mlir_bridge/gpu/workgroup.hpp"

namespace kiln::gpu {

void emit_attention(kernel_emitter& e);
// Returns 2^x of f32 in one instruction. A result below 2^-126 may be 0.
Value power_of_two(code_builder& code, Value x);
// Returns the configurations that a tuner may try for the generator that takes it.
std::vector<candidate> attention_space(kernel_emitter& e);

// The anchor's tensors and extents. Query heads that share keys are rows beside each other: row = (head in the group) *
// queries + query.
struct attention_problem {
  explicit attention_problem(kernel_emitter& e);

  kernel_emitter& emitter;
  const attention& op;
  // mask.producer is null without one. A prefix mask (ir/prefix_mask.hpp) is `limit` instead, so kernels skip the keys
  // that no row sees, as with a causal mask.
  value query, key, value_, mask;
  std::optional<prefix_mask> limit;
  attention_extents n;       // typical values for open sizes
  std::int64_t share, rows;  // query heads of one head of keys; rows of one head of keys, a usual number if open
  // If the number of heads is open, there are as many heads of keys, and they are one more axis of the batch.
  std::vector<dim> batch_sizes;
  dim heads;
  dim batch, queries, keys, all_rows;  // the sizes of n.batch, n.queries, n.keys and rows, which may be open
  bool is_open() const { return !(batch.is_static() && queries.is_static() && keys.is_static()); }

  // Where the work of a thread is: the batch and the head of keys.
  struct place {
    values batch;
    Value key_head;
  };
  place at(code_builder& code, Value batch, Value key_head) const;
  // Positions of `lanes` elements along the depth from `depth`, a multiple of `multiple`.
  position of_query(code_builder& code, const place& p, Value row, Value depth, std::int64_t lanes,
                    std::int64_t multiple) const {
    return of_row(code, op.query_layout, p, row, depth, lanes, multiple);
  }
  position of_output(code_builder& code, const place& p, Value row, Value depth, std::int64_t lanes,
                     std::int64_t multiple) const {
    return of_row(code, op.output_layout, p, row, depth, lanes, multiple);
  }
  position of_key(const place& p, Value j, Value depth, std::int64_t lanes, std::int64_t multiple) const {
    return of_head(op.key_layout, p, p.key_head, j, depth, lanes, multiple);
  }
  position of_value(const place& p, Value j, Value depth, std::int64_t lanes, std::int64_t multiple) const {
    return of_head(op.value_layout, p, p.key_head, j, depth, lanes, multiple);
  }

  // A score in units of log2 is a product times this.
  double score_factor() const;
  // Returns true if products may be compared and scaled later, with the subtraction of their maximum.
  bool scales_weights() const;
  // Scores in units of log2: the scaled product with the mask of `lanes` keys from j applied (j within the keys). Not
  // `scaled`: without score_factor().
  Value masked_score(kernel_emitter& e, const place& p, Value row, Value j, Value product, std::int64_t multiple,
                     bool scaled = true) const;
  // Scores of neighbouring keys from j on out of their products; where `masked`, -inf from row_end on.
  values scores(kernel_emitter& e, const place& p, Value row, Value row_end, Value j, const values& products,
                bool masked, bool scaled = true) const;
  // The query's number within its head.
  Value query_of(code_builder&, Value row) const { return share == 1 ? row : emitter.rem(row, queries); }
  // Returns true if rows do not see all keys: end_of_row() differs between them.
  bool ends_early() const { return op.causal || limit; }
  // One more than the last key that a row sees; at most `keys`, and 0 or less if it sees none.
  Value end_of_row(code_builder& code, const place& p, Value row) const;
  // The same for query `query_number` of head `head`.
  Value end_of_query(code_builder& code, const place& p, Value head, Value query_number) const;
  // The smallest and the largest end of the rows [first, first + count), at least 0. All lanes of a wave must call it.
  std::array<Value, 2> ends_of_rows(workgroup& group, const place& p, Value first, std::int64_t count) const;

 private:
  position of_row(code_builder& code, head_layout layout, const place& p, Value row, Value depth, std::int64_t lanes,
                  std::int64_t multiple) const;
  position of_head(head_layout layout, const place& p, Value head, Value j, Value depth, std::int64_t lanes,
                   std::int64_t multiple) const;
  // Position in a tensor that broadcasts to [batch..., heads, queries, keys], such as a mask.
  position of_scores(value v, const place& p, Value head, Value query, const axis_index& key) const;
  Value head_of(code_builder& code, const place& p, Value row) const;
};

// Opens the workgroups of `tiles` of rows of each head of keys, and says which tile is a workgroup's: in a grid of
// three dimensions, or of one if a size is open. Then `used` is 1, or 0 at the sizes at which there are no workgroups.
struct attention_group {
  attention_group(kernel_emitter& e, const attention_problem& problem, const dim& tiles, std::int64_t threads,
                  const dim& used = 1);
  workgroup group;
  Value tile, key_head, batch;
};

// Both products with matrix instructions, 16-bit types. False where they do not fit: the caller does it on the vector
// unit. The configuration's "waves" of a workgroup and "keys" of a block overrule the choice. `used` is 1, or 0 at the
// sizes at which the stage has nothing to do.
bool emit_matrix_attention(kernel_emitter& e, const attention_problem& problem, const dim& used = 1);
std::vector<candidate> matrix_attention_space(kernel_emitter& e, const attention_problem& problem);
// The same for few rows of a head of keys, whose keys and values go straight from memory to the instructions. False
// where that does not fit. "narrow" of the configuration, 0 or 1, overrules the choice, "waves" and "key_parts" how the
// work is divided.
bool emit_narrow_attention(kernel_emitter& e, const attention_problem& problem);
// The same for an open number of keys. False where it does not fit, or where the batch or the queries are open, too.
bool emit_open_narrow_attention(kernel_emitter& e, const attention_problem& problem);
std::vector<candidate> narrow_attention_space(kernel_emitter& e, const attention_problem& problem);
// What both take: 16 rows at a time. Null where the target has none for the type.
const matrix_instruction* attention_instruction(const kernel_emitter& e, element_type type);
// Any floating type, any depth, on the vector unit. The configuration's "waves" overrules the choice.
void emit_vector_attention(kernel_emitter& e, const attention_problem& problem, const dim& used = 1);
// Few queries of open lengths, on the vector unit; nothing at the sizes for which `used` is 0.
void emit_few_queries(const attention_problem& problem, const dim& used);
std::vector<candidate> vector_attention_space(kernel_emitter& e, const attention_problem& problem);

}  // namespace kiln::gpu
