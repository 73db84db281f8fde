// Attention on CPUs. A work item computes tiles of query rows against all keys of one key head. For each tile, the
// scores of a chunk of keys are computed in the first-level cache and converted to weights there by subtracting the
// running maximum; sums and results are rescaled when the maximum grows (Milakov and Gimelshein, "Online normalizer
// calculation for softmax"). The weights are then multiplied by the values. The score matrix is never stored as a
// whole. Query heads that share a key head are consecutive rows, so that a key is read once for all of them.
#pragma once

#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "ir/ops/attention.hpp"
#include "mlir_bridge/cpu/contraction/blocking.hpp"
#include "mlir_bridge/cpu/contraction/packing.hpp"
#include "mlir_bridge/cpu/contraction/tile_writer.hpp"

namespace kiln::cpu {

// Up to this many rows, keys are read in their original layout. With more rows, packing pays off.
inline constexpr std::int64_t most_direct_rows = 8;
// Keys of a chunk, if there are several chunks. Their keys and values stay in a cache for all tiles that are processed
// together.
inline constexpr std::int64_t most_keys = 256;

class attention_emitter {
 public:
  explicit attention_emitter(kernel_emitter& emitter);
  void emit();

 private:
  static constexpr double lowest = -std::numeric_limits<double>::infinity();
  // Keys of one sum along the depth, where keys are not packed.
  static constexpr std::int64_t keys_at_once = 4;

  // Maps [batch..., head], a position and a depth to the indices of a tensor in this layout.
  static values in_layout(values at, Value position, Value depth, head_layout layout) {
    at.insert(layout == head_layout::heads_first ? at.end() : at.end() - 1, position);
    if (depth) at.push_back(depth);
    return at;
  }

  // The query head and the query of row `row` of the group. Rows beyond the last one repeat the last one.
  struct query_row {
    values head;  // [batch..., head]
    Value position;
  };
  query_row row_at(Value row);
  // Returns the address of the group's first position in a buffer, and the distance to the next position.
  std::pair<Value, std::int64_t> place_of_group(head_layout layout, std::int64_t positions, std::int64_t depth);
  Value number(double v, std::int64_t lanes = 1) { return code.number(code.type(sum_type, lanes), v); }
  Value times(Value a, Value b) { return code.make<mlir::arith::MulFOp>(a, b); }
  Value larger_number(Value x, Value y) {
    return code.select(code.make<mlir::arith::CmpFOp>(mlir::arith::CmpFPredicate::OGT, x, y), x, y);
  }
  Value at_row(Value row, std::int64_t pitch) { return code.mul(row, pitch); }

  // --- the plan of the kernel (attention_emitter.cpp)

  // Rows are divided evenly into tiles of at most `tile_m`. With few rows, registers are left for several vectors of
  // values.
  tile_shape packed_tile() const;
  std::int64_t standard_rows() const;
  // Packs keys in panels of [depth, columns], so that scores are the columns of a tile.
  void pack_keys(std::int64_t group_count);
  // Computes tiles [first, last), as many as fit into the stack memory. All of them process a chunk of keys before the
  // next chunk.
  void emit_tiles(Value first, Value last);
  void add_chunk(Value first, Value count);
  // Returns the number of keys that at least one row of the tile sees.
  Value keys_seen();
  // Calls body(index, lanes) over [0, count): whole vectors, then single elements.
  void sweep(Value count, std::int64_t lanes, const std::function<void(Value, std::int64_t)>& body);

  // --- scores (attention_scores.cpp)

  // How the queries of a tile are stored: the type, and the elements from one query to the next.
  element_type query_type() const { return by_lane ? query.type().type : sum_type; }
  std::int64_t query_pitch() const { return steps_of(by_lane, n.depth) * neighbours_of(by_lane); }

  void load_queries();
  // scores[r, j] = query row r · key first + j. Entries beyond `count` are unspecified.
  void make_scores(Value first, Value count);
  // For few rows: sums run along the depth, for several keys at a time.
  void make_scores_directly(Value first, Value count);

  // --- weights (attention_weights.cpp)

  // Stores weights of row r of the tile where weighted_values() reads them: in place of the scores, or rounded to the
  // type of the values in rows with room for the neighbour that an odd number of keys lacks.
  void store_weights(Value r, Value key, Value some);
  std::int64_t weight_pitch() const { return chunk + neighbours_of(by_lane); }
  // Converts the masked scores of one row to exp(score - running maximum) and updates the row's sum and correction.
  void make_weights(Value r, Value first, Value count);
  // Returns true if all scores of a row fit into a few registers.
  bool fits_registers() const;
  // Converts all scores of one row, which are computed at once, to weights. The last vector overlaps the one before if
  // the keys are no multiple of the lanes; the scores that both hold count once.
  void make_weights_of_row(Value r);
  // Applies the mask to the scores of keys from `key_index` on.
  Value masked(Value score, const query_row& row, Value key_index);
  void apply_masks(Value r, Value start, Value first, Value count);

  // --- the product with the values, in panels of their depth (attention_values.cpp)

  // Returns pairs of values in lanes: [group, pair of keys, depth].
  buffer paired_values(std::int64_t group_count);
  // Copies the values of each head to contiguous memory if they are read many times. Otherwise rows are far apart and
  // map to few sets of a cache.
  buffer gathered_values(std::int64_t group_count);
  tile_shape shape_of(std::size_t s) const { return {tile.rows, segments[s].vectors, segments[s].lanes}; }
  Value row_of(std::size_t s, std::size_t i) {
    return code.constant(static_cast<std::int64_t>(i) / segments[s].vectors);
  }
  Value place_of(std::size_t s, Value column, std::size_t i);
  void each_panel(const std::function<void(std::size_t, Value)>& body);
  values kept(std::size_t s, Value column);
  values weighted_values(std::size_t s, Value column, Value first, Value count, values so_far);
  void write(std::size_t s, Value column, values all);

  kernel_emitter& e;
  code_builder& code;
  const attention& op;
  const value query, key, value_;
  value mask;
  const attention_extents n;
  const element_type sum_type;
  // Query heads per key head, and query rows per key head.
  const std::int64_t share, rows;
  // Batch dims and key heads.
  std::vector<std::int64_t> groups;
  // `direct`: keys are not packed. `gathered`: values are copied.
  bool direct = false, gathered = false;
  // Set if queries and keys, and weights and values, are multiplied in lanes of neighbours. Queries are then stored as
  // they are, and the scale is applied to the scores.
  std::optional<lane_products> by_lane;
  // Query rows × keys.
  tile_shape tile;
  // Number of keys whose scores are computed at a time.
  std::int64_t chunk = 0;
  std::int64_t tiles_at_once = 1;
  contraction packed;
  buffer keys_at, values_at;
  // Segments of the values' depth.
  std::vector<column_segment> segments;
  std::vector<tile_writer> writers;
  Value query_tile, scores, weights, tops, sums, corrections, results;
  Value group, first_row;
  // Index of the tile's first row among those of the current tiles.
  Value slot;
  values group_at;
};

}  // namespace kiln::cpu
