// Attention on CPUs. A work item computes tiles of query rows against all keys of one key head. For each tile, the
// scores of a chunk of keys are computed in the first-level cache and converted to weights there by subtracting the
// running maximum; sums and results are rescaled when the maximum grows (Milakov and Gimelshein, "Online normalizer
// calculation for softmax"). The weights are then multiplied by the values. The score matrix is never stored as a
// whole. Query heads that share a key head are consecutive rows, so that a key is read once for all of them.
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "ir/ops/attention.hpp"
#include "ir/prefix_mask.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/cpu/contraction/blocking.hpp"
#include "mlir_bridge/cpu/contraction/packing.hpp"
#include "mlir_bridge/cpu/contraction/tile_writer.hpp"
#include "mlir_bridge/kinds/attention/generators.hpp"

namespace kiln::cpu {

namespace {

namespace arith = mlir::arith;

constexpr double lowest = -std::numeric_limits<double>::infinity();
// Up to this many rows, keys are read in their original layout. With more rows, packing pays off.
constexpr std::int64_t most_direct_rows = 8, direct_tile_rows = 4, keys_at_once = 4;
constexpr std::int64_t tile_rows = 6, tile_vectors = 2;
// Stack memory for the queries and results of a tile, and for its scores.
constexpr std::int64_t row_bytes = 24 << 10, score_bytes = 24 << 10;
// Keys of a chunk, if there are several chunks. Their keys and values stay in a cache for all tiles that are processed
// together.
constexpr std::int64_t most_keys = 256;
// Number of multiply-adds that makes a work item worth scheduling.
constexpr std::int64_t item_products = 1 << 19;
// Up to this many rows, the rows that the last tile lacks are a notable share, so the tile is chosen to waste few.
constexpr std::int64_t few_rows = 64, most_tile_rows = 8;
// Up to this many vectors, all weights of a row are kept in registers.
constexpr std::int64_t most_row_vectors = 8;

class attention_emitter {
 public:
  explicit attention_emitter(kernel_emitter& emitter)
      : e(emitter),
        code(emitter.code),
        op(*e.anchor()->op().get_if<attention>()),
        query(e.anchor()->inputs()[0]),
        key(e.anchor()->inputs()[1]),
        value_(e.anchor()->inputs()[2]),
        n(op, query.type(), key.type(), value_.type()),
        sum_type(accumulation_type(query.type().type)),
        share(n.heads / n.key_heads),
        rows(share * n.queries) {
    auto dims = e.dims(query);
    groups.assign(dims.begin(), dims.end() - 3);
    groups.push_back(n.key_heads);
  }

  void emit() {
    const std::int64_t group_count = n.batch * n.key_heads;
    if (group_count * rows * n.value_depth == 0) return;
    direct = rows <= most_direct_rows || n.keys == 0;
    tile = direct ? tile_shape{std::min(rows, direct_tile_rows), 1, register_lanes(e, sum_type)} : packed_tile();
    tile.rows = std::clamp<std::int64_t>(
        row_bytes / ((n.depth + n.value_depth) * static_cast<std::int64_t>(storage_bytes(sum_type, 1))), 1, tile.rows);
    values_at = gathered_values(group_count);
    if (e.anchor()->inputs().size() == 4) {
      mask = e.anchor()->inputs()[3];
      // A prefix mask is cheaper to compare again than to read.
      if (!find_prefix_mask(mask)) e.materialize(mask);
    }
    if (direct) keys_at = e.materialize(key);
    else pack_keys(group_count);
    const std::int64_t step = std::lcm(tile.columns(), keys_at_once),
                       most = std::max(step, score_bytes /
                                                 (tile.rows * static_cast<std::int64_t>(storage_bytes(sum_type, 1))) /
                                                 step * step);
    chunk = std::min((n.keys + step - 1) / step * step, most);
    chunk = std::max(chunk, step);
    if (chunk < n.keys)
      chunk = std::max(step, std::min(most, choose(e.configuration, "keys", most_keys) / step * step));

    const std::int64_t tiles = (rows + tile.rows - 1) / tile.rows,
                       products = std::max<std::int64_t>(1, tile.rows * n.keys * (n.depth + n.value_depth));
    const std::int64_t tiles_per_item = std::clamp<std::int64_t>(item_products / products, 1, tiles),
                       blocks = (tiles + tiles_per_item - 1) / tiles_per_item;
    if (chunk < n.keys)
      tiles_at_once = std::clamp<std::int64_t>(
          row_bytes / (tile.rows * (n.depth + n.value_depth) * static_cast<std::int64_t>(storage_bytes(sum_type, 1))),
          1, tiles_per_item);
    e.begin_stage("attention", group_count * blocks);
    query_tile = code.stack(sum_type, tiles_at_once * tile.rows * n.depth);
    scores = code.stack(sum_type, tile.rows * chunk);
    tops = code.stack(sum_type, tiles_at_once * tile.rows);
    sums = code.stack(sum_type, tiles_at_once * tile.rows);
    corrections = code.stack(sum_type, tile.rows);
    results = chunk < n.keys ? code.stack(sum_type, tiles_at_once * tile.rows * n.value_depth) : Value();
    // Both products have the same rows. Use as many vectors of values as registers allow.
    const std::int64_t room = std::max<std::int64_t>(1, (e.target.vector_registers - 2) / (tile.rows + 1)),
                       lanes = std::min(
                           register_lanes(e, sum_type),
                           static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n.value_depth))));
    const std::int64_t all = std::max<std::int64_t>(1, n.value_depth / lanes), passes = (all + room - 1) / room;
    segments = exact_segments({tile.rows, (all + passes - 1) / passes, lanes}, n.value_depth);
    for (const column_segment& segment : segments)
      writers.emplace_back(e, tile_shape{tile.rows, segment.vectors, segment.lanes}, sum_type);
    code.loop(e.begin(), e.end(), 1, [&](Value item) {
      values digits = code.delinearize(item, std::vector<std::int64_t>{group_count, blocks});
      group = digits[0];
      group_at = code.delinearize(group, groups);
      Value first = code.mul(digits[1], tiles_per_item), last = code.min(code.add(first, tiles_per_item), tiles);
      code.loop(first, last, tiles_at_once,
                [&](Value t) { emit_tiles(t, code.min(code.add(t, tiles_at_once), last)); });
    });
    e.end_stage();
  }

 private:
  // Rows are divided evenly into tiles of at most `tile_m`. With few rows, registers are left for several vectors of
  // values.
  tile_shape packed_tile() const {
    const std::int64_t most = std::max<std::int64_t>(1, choose(e.configuration, "tile_m", standard_rows())),
                       tiles = (rows + most - 1) / most;
    const std::int64_t lanes = std::min(register_lanes(e, sum_type),
                                        static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n.keys))));
    const std::int64_t vectors = std::clamp<std::int64_t>(
        choose(e.configuration, "tile_n", tile_vectors * lanes) / lanes, 1, (n.keys + lanes - 1) / lanes);
    return {(rows + tiles - 1) / tiles, vectors, lanes};
  }

  std::int64_t standard_rows() const {
    if (rows > few_rows) return tile_rows;
    std::int64_t best = tile_rows;
    double best_cost = std::numeric_limits<double>::max();
    for (std::int64_t r = tile_rows / 2; r <= most_tile_rows; ++r) {
      if ((r + 1) * tile_vectors + 1 > e.target.vector_registers) break;
      // Each tile also takes about half a row's time for what is done once.
      const double cost = static_cast<double>((rows + r - 1) / r) * (static_cast<double>(r) + 0.5);
      if (cost < best_cost) best = r, best_cost = cost;
    }
    return best;
  }

  // Copies the values of each head to contiguous memory if they are read many times. Otherwise rows are far apart and
  // map to few sets of a cache.
  buffer gathered_values(std::int64_t group_count) {
    gathered = op.value_layout == head_layout::sequence_first && n.key_heads > 1 && !direct;
    if (!gathered) return e.materialize(value_);
    buffer made = e.add_scratch(value_.type().type, {group_count, n.keys, n.value_depth});
    e.parallel("values", {group_count, n.keys}, n.value_depth, [&](std::span<const Value> at) {
      values head = code.delinearize(at[0], groups);
      sweep(code.constant(n.value_depth), e.lanes_for(sum_type, n.value_depth), [&](Value d, std::int64_t lanes) {
        evaluator ev(e);
        Value elements = ev.at(value_, ev.along(in_layout(head, at[1], d, op.value_layout), lanes), lanes);
        ev.store(made, ev.along(values{at[0], at[1], d}, lanes), elements);
      });
    });
    return made;
  }

  // Packs keys in panels of [depth, columns], so that scores are the columns of a tile.
  void pack_keys(std::int64_t group_count) {
    packed.groups = group_count;
    packed.steps = n.depth;
    packed.columns = n.keys;
    pack_right(e, packed, 1, tile,
               {key, static_cast<std::int64_t>(head_axes(op.key_layout, key.type().rank()).position),
                [&](Value g, Value, Value step, Value column) {
                  values at = code.delinearize(g, groups);
                  return in_layout(at, column, step, op.key_layout);
                }});
  }

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
  query_row row_at(Value row) {
    row = code.min(row, rows - 1);
    query_row result{group_at, code.rem(row, code.constant(n.queries))};
    result.head.back() = code.add(code.mul(result.head.back(), share), code.div(row, code.constant(n.queries)));
    return result;
  }

  Value number(double v, std::int64_t lanes = 1) { return code.number(code.type(sum_type, lanes), v); }
  Value times(Value a, Value b) { return code.make<arith::MulFOp>(a, b); }
  Value larger_number(Value x, Value y) {
    return code.select(code.make<arith::CmpFOp>(arith::CmpFPredicate::OGT, x, y), x, y);
  }
  Value at_row(Value row, std::int64_t pitch) { return code.mul(row, pitch); }

  // Calls body(index, lanes) over [0, count): whole vectors, then single elements.
  void sweep(Value count, std::int64_t lanes, const std::function<void(Value, std::int64_t)>& body) {
    Value even = code.mul(code.div(count, code.constant(lanes)), lanes);
    code.loop(code.constant(0), even, lanes, [&](Value i) { body(i, lanes); });
    code.loop(even, count, 1, [&](Value i) { body(i, 1); });
  }

  // Computes tiles [first, last), as many as fit into the stack memory. All of them process a chunk of keys before the
  // next chunk.
  void emit_tiles(Value first, Value last) {
    auto each_tile = [&](const std::function<void()>& body) {
      code.loop(first, last, 1, [&](Value t) {
        first_row = code.mul(t, tile.rows);
        slot = code.mul(code.sub(t, first), tile.rows);
        body();
      });
    };
    if (chunk >= n.keys) {
      each_tile([&] {
        load_queries();
        Value seen = keys_seen();
        make_scores(code.constant(0), seen);
        code.loop(0, tile.rows, 1, [&](Value r) {
          if (fits_registers()) make_weights_of_row(r);
          else make_weights(r, code.constant(0), seen);
        });
        each_panel([&](std::size_t s, Value column) {
          write(s, column, weighted_values(s, column, code.constant(0), seen, zero_tile(code, shape_of(s), sum_type)));
        });
      });
      return;
    }
    each_tile([&] {
      load_queries();
      code.loop(0, tile.rows * n.value_depth, 1,
                [&](Value i) { code.store(results, code.add(at_row(slot, n.value_depth), i), sum_type, number(0)); });
    });
    code.loop(0, n.keys, chunk, [&](Value from) {
      each_tile([&] {
        Value count = code.min(code.sub(keys_seen(), from), chunk);
        code.when(code.less(code.constant(0), count), [&] { add_chunk(from, count); });
      });
    });
    each_tile([&] { each_panel([&](std::size_t s, Value column) { write(s, column, kept(s, column)); }); });
  }

  void load_queries() {
    code.loop(0, tile.rows, 1, [&](Value r) {
      query_row row = row_at(code.add(first_row, r));
      Value kept_row = code.add(slot, r);
      sweep(code.constant(n.depth), e.lanes_for(sum_type, std::max<std::int64_t>(n.depth, 1)),
            [&](Value d, std::int64_t lanes) {
              evaluator ev(e);
              values where = in_layout(row.head, row.position, d, op.query_layout);
              code.store(query_tile, code.add(at_row(kept_row, n.depth), d), sum_type,
                         times(ev.at(query, ev.along(where, lanes), lanes), number(op.scale, lanes)));
            });
      code.store(tops, kept_row, sum_type, number(lowest));
      code.store(sums, kept_row, sum_type, number(0));
    });
  }

  void add_chunk(Value first, Value count) {
    make_scores(first, count);
    code.loop(0, tile.rows, 1, [&](Value r) { make_weights(r, first, count); });
    each_panel([&](std::size_t s, Value column) {
      values so_far = kept(s, column);
      for (std::size_t i = 0; i < so_far.size(); ++i)
        so_far[i] = times(so_far[i], code.splat(code.load(corrections, row_of(s, i), sum_type, 1), segments[s].lanes));
      so_far = weighted_values(s, column, first, count, std::move(so_far));
      for (std::size_t i = 0; i < so_far.size(); ++i) code.store(results, place_of(s, column, i), sum_type, so_far[i]);
    });
  }

  // Returns the number of keys that at least one row of the tile sees.
  Value keys_seen() {
    if (!op.causal || n.queries == 1) return code.constant(n.keys);
    Value last_row = code.min(code.add(first_row, tile.rows - 1), rows - 1),
          last = code.rem(last_row, code.constant(n.queries));
    if (share > 1)
      last = code.select(
          code.equal(code.div(first_row, code.constant(n.queries)), code.div(last_row, code.constant(n.queries))), last,
          code.constant(n.queries - 1));
    return code.min(code.max(code.add(last, n.keys - n.queries + 1), 0), n.keys);
  }

  // scores[r, j] = query row r · key first + j. Entries beyond `count` are unspecified.
  void make_scores(Value first, Value count) {
    if (direct) return make_scores_directly(first, count);
    factor left{query_tile, sum_type, n.depth, 1},
        right{e.pointer(packed.right), packed.right.type, 0, packed.right_step};
    Value panels = code.div(code.add(count, tile.columns() - 1), code.constant(tile.columns())),
          first_panel = code.div(first, code.constant(tile.columns()));
    code.loop(code.constant(0), panels, 1, [&](Value p) {
      Value at = code.add(code.mul(group, packed.right_group), code.mul(code.add(first_panel, p), packed.right_panel));
      values made = accumulate(code, tile, {0, tile.rows}, left, at_row(slot, n.depth), right, at, n.depth, 1, sum_type,
                               zero_tile(code, tile, sum_type));
      for (std::size_t i = 0; i < made.size(); ++i) {
        auto r = static_cast<std::int64_t>(i) / tile.vectors, v = static_cast<std::int64_t>(i) % tile.vectors;
        code.store(scores, code.add(code.mul(p, tile.columns()), r * chunk + v * tile.lanes), sum_type, made[i]);
      }
    });
  }

  // For few rows: sums run along the depth, for several keys at a time.
  void make_scores_directly(Value first, Value count) {
    const std::int64_t lanes = register_lanes(e, sum_type), even = n.depth / lanes * lanes;
    Value pointer = e.pointer(keys_at);
    auto [start, pitch] = place_of_group(op.key_layout, n.keys, n.depth);
    auto some = [&, start = start, pitch = pitch](Value j, std::int64_t keys) {
      Value from = code.add(start, code.mul(code.add(first, j), pitch));
      auto add = [&](Value d, std::int64_t width, std::span<const Value> so_far) {
        values all(so_far.begin(), so_far.end());
        for (std::int64_t k = 0; k < keys; ++k) {
          Value elements = widen(code, code.load(pointer, code.add(code.add(from, d), k * pitch), keys_at.type, width),
                                 keys_at.type, sum_type);
          for (std::int64_t r = 0; r < tile.rows; ++r) {
            Value& sum = all[static_cast<std::size_t>(r * keys + k)];
            sum = code.fma(
                code.load(query_tile, code.add(at_row(slot, n.depth), code.add(d, r * n.depth)), sum_type, width),
                elements, sum);
          }
        }
        return all;
      };
      values made = code.loop(0, even, lanes, values(static_cast<std::size_t>(tile.rows * keys), number(0, lanes)),
                              [&](Value d, std::span<const Value> so_far) { return add(d, lanes, so_far); });
      for (Value& sum : made) sum = code.horizontal(mlir::vector::CombiningKind::ADD, sum);
      made =
          code.loop(even, n.depth, 1, made, [&](Value d, std::span<const Value> so_far) { return add(d, 1, so_far); });
      for (std::size_t i = 0; i < made.size(); ++i)
        code.store(scores,
                   code.add(j, static_cast<std::int64_t>(i) / keys * chunk + static_cast<std::int64_t>(i) % keys),
                   sum_type, made[i]);
    };
    Value even_keys = code.mul(code.div(count, code.constant(keys_at_once)), keys_at_once);
    code.loop(code.constant(0), even_keys, keys_at_once, [&](Value j) { some(j, keys_at_once); });
    code.loop(even_keys, count, 1, [&](Value j) { some(j, 1); });
  }

  // Returns the address of the group's first position in a buffer, and the distance to the next position.
  std::pair<Value, std::int64_t> place_of_group(head_layout layout, std::int64_t positions, std::int64_t depth) {
    if (layout == head_layout::heads_first) return {code.mul(group, positions * depth), depth};
    values digits = code.delinearize(group, std::vector<std::int64_t>{n.batch, n.key_heads});
    return {code.add(code.mul(digits[0], n.key_heads * positions * depth), code.mul(digits[1], depth)),
            n.key_heads * depth};
  }

  // Converts the masked scores of one row to exp(score - running maximum) and updates the row's sum and correction.
  void make_weights(Value r, Value first, Value count) {
    const std::int64_t lanes = tile.lanes;
    Value start = at_row(r, chunk), kept_row = code.add(slot, r);
    if (mask || op.causal) apply_masks(r, start, first, count);
    // Entries beyond the keys, up to a whole vector, are set to weight 0.
    Value whole = code.mul(code.div(code.add(count, lanes - 1), code.constant(lanes)), lanes);
    code.loop(count, whole, 1, [&](Value j) { code.store(scores, code.add(start, j), sum_type, number(lowest)); });
    Value top =
        code.loop(code.constant(0), whole, lanes, {number(lowest, lanes)}, [&](Value j, std::span<const Value> so_far) {
          return values{larger_number(code.load(scores, code.add(start, j), sum_type, lanes), so_far[0])};
        })[0];
    Value before = code.load(tops, kept_row, sum_type, 1);
    if (lanes > 1) top = code.horizontal(mlir::vector::CombiningKind::MAXNUMF, top);
    top = larger_number(top, before);
    // All scores so far were masked. Use 0 for the running maximum, because -inf - (-inf) is NaN.
    Value safe = code.select(code.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, top, number(lowest)), number(0), top);
    Value sum =
        code.loop(code.constant(0), whole, lanes, {number(0, lanes)}, [&](Value j, std::span<const Value> so_far) {
          Value at = code.add(start, j),
                weight = exponential(
                    code, code.make<arith::SubFOp>(code.load(scores, at, sum_type, lanes), code.splat(safe, lanes)));
          code.store(scores, at, sum_type, weight);
          return values{code.make<arith::AddFOp>(so_far[0], weight)};
        })[0];
    if (lanes > 1) sum = code.horizontal(mlir::vector::CombiningKind::ADD, sum);
    Value correction = exponential(code, code.make<arith::SubFOp>(before, safe));
    code.store(tops, kept_row, sum_type, top);
    code.store(corrections, r, sum_type, correction);
    code.store(sums, kept_row, sum_type, code.fma(code.load(sums, kept_row, sum_type, 1), correction, sum));
  }

  // Returns true if all scores of a row fit into a few registers.
  bool fits_registers() const {
    return tile.lanes > 1 && !direct && !op.causal && n.keys >= tile.lanes && n.keys <= most_row_vectors * tile.lanes;
  }

  // Converts all scores of one row, which are computed at once, to weights. The last vector overlaps the one before if
  // the keys are no multiple of the lanes; the scores that both hold count once.
  void make_weights_of_row(Value r) {
    const std::int64_t lanes = tile.lanes, vectors = (n.keys + lanes - 1) / lanes, rest = n.keys % lanes;
    const Value start = at_row(r, chunk), none = number(lowest, lanes);
    const query_row row = row_at(code.add(first_row, r));
    auto first_of = [&](std::int64_t v) { return code.constant(std::min(v * lanes, n.keys - lanes)); };
    values weights;
    Value top = none;
    for (std::int64_t v = 0; v < vectors; ++v) {
      Value score = code.load(scores, code.add(start, first_of(v)), sum_type, lanes);
      if (mask) score = masked(score, row, first_of(v));
      if (rest && v + 1 == vectors)
        score = code.select(code.less(code.lane_numbers(lanes), code.splat(code.constant(lanes - rest), lanes)), none,
                            score);
      top = larger_number(score, top);
      weights.push_back(score);
    }
    top = code.horizontal(mlir::vector::CombiningKind::MAXNUMF, top);
    // All scores are masked: 0 instead of the maximum, because -inf - (-inf) is NaN.
    top = code.select(code.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, top, number(lowest)), number(0), top);
    Value sum = number(0, lanes);
    for (Value& weight : weights) {
      weight = exponential(code, code.make<arith::SubFOp>(weight, code.splat(top, lanes)));
      sum = code.make<arith::AddFOp>(sum, weight);
    }
    // The last vector first: the one before overwrites what both hold.
    for (std::int64_t v = vectors; v-- > 0;)
      code.store(scores, code.add(start, first_of(v)), sum_type, weights[static_cast<std::size_t>(v)]);
    code.store(sums, code.add(slot, r), sum_type, code.horizontal(mlir::vector::CombiningKind::ADD, sum));
  }

  // Applies the mask to the scores of keys from `key_index` on.
  Value masked(Value score, const query_row& row, Value key_index) {
    const std::int64_t lanes = code_builder::lanes_of(score);
    evaluator ev(e);
    values where = row.head;
    where.insert(where.end(), {row.position, key_index});
    auto dims = e.dims(mask);
    where.erase(where.begin(), where.end() - static_cast<std::ptrdiff_t>(dims.size()));
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (dims[i] == 1) where[i] = code.constant(0);
    position place = ev.along(where, !dims.empty() && dims.back() > 1 ? lanes : 1);
    Value given = ev.at(mask, place, lanes);
    element_type type = mask.type().type;
    if (type == element_type::boolean) return code.select(given, score, number(lowest, lanes));
    return code.make<arith::AddFOp>(score, convert_element(code, given, compute_type(type), sum_type));
  }

  void apply_masks(Value r, Value start, Value first, Value count) {
    query_row row = row_at(code.add(first_row, r));
    sweep(count, tile.lanes, [&](Value j, std::int64_t lanes) {
      Value at = code.add(start, j), score = code.load(scores, at, sum_type, lanes), key_index = code.add(first, j);
      if (mask) score = masked(score, row, key_index);
      if (op.causal) {
        Value indices = lanes == 1 ? key_index : code.add(code.splat(key_index, lanes), code.lane_numbers(lanes));
        Value end = code.add(row.position, n.keys - n.queries + 1);
        score = code.select(code.less(indices, code.splat(end, lanes)), score, number(lowest, lanes));
      }
      code.store(scores, at, sum_type, score);
    });
  }

  // --- the product with the values, in panels of their depth

  tile_shape shape_of(std::size_t s) const { return {tile.rows, segments[s].vectors, segments[s].lanes}; }
  Value row_of(std::size_t s, std::size_t i) {
    return code.constant(static_cast<std::int64_t>(i) / segments[s].vectors);
  }
  Value place_of(std::size_t s, Value column, std::size_t i) {
    auto index = static_cast<std::int64_t>(i);
    return code.add(code.add(at_row(slot, n.value_depth), column),
                    index / segments[s].vectors * n.value_depth + index % segments[s].vectors * segments[s].lanes);
  }

  void each_panel(const std::function<void(std::size_t, Value)>& body) {
    for (std::size_t s = 0; s < segments.size(); ++s)
      code.loop(0, segments[s].count, 1, [&](Value panel) {
        body(s, code.add(code.mul(panel, segments[s].columns()), segments[s].first_column));
      });
  }

  values kept(std::size_t s, Value column) {
    values all;
    for (std::int64_t i = 0; i < tile.rows * segments[s].vectors; ++i)
      all.push_back(code.load(results, place_of(s, column, static_cast<std::size_t>(i)), sum_type, segments[s].lanes));
    return all;
  }

  values weighted_values(std::size_t s, Value column, Value first, Value count, values so_far) {
    auto [start, pitch] = place_of_group(gathered ? head_layout::heads_first : op.value_layout, n.keys, n.value_depth);
    factor left{scores, sum_type, chunk, 1}, right{e.pointer(values_at), values_at.type, 0, pitch};
    Value from = code.add(code.add(start, code.mul(first, pitch)), column);
    return accumulate(code, shape_of(s), left, code.constant(0), right, from, count, sum_type, std::move(so_far));
  }

  void write(std::size_t s, Value column, values all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      Value sum = code.load(sums, code.add(slot, row_of(s, i)), sum_type, 1);
      all[i] = n.keys == 0 ? number(0, segments[s].lanes)
                           : times(all[i], code.splat(code.make<arith::DivFOp>(number(1), sum), segments[s].lanes));
    }
    tile_place place;
    place.valid_rows = code.min(code.sub(code.constant(rows), first_row), tile.rows);
    place.rows_always_full = rows % tile.rows == 0;
    place.column = column;
    place.locate = [&](Value r) {
      query_row row = row_at(code.add(first_row, r));
      return in_layout(row.head, row.position, {}, op.output_layout);
    };
    writers[s].write(all, place);
  }

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
  Value query_tile, scores, tops, sums, corrections, results;
  Value group, first_row;
  // Index of the tile's first row among those of the current tiles.
  Value slot;
  values group_at;
};

}  // namespace

void emit_attention(kernel_emitter& e) { attention_emitter(e).emit(); }

std::vector<candidate> attention_space(kernel_emitter& e) {
  const attention_extents n(*e.anchor()->op().get_if<attention>(), e.anchor()->inputs()[0].type(),
                            e.anchor()->inputs()[1].type(), e.anchor()->inputs()[2].type());
  const std::int64_t rows = n.heads / n.key_heads * n.queries,
                     lanes = register_lanes(e, accumulation_type(e.anchor()->inputs()[0].type().type)),
                     registers = e.target.vector_registers;
  std::vector<candidate> result;
  if (rows <= most_direct_rows || n.keys == 0) return result;
  for (std::int64_t tile_m : {2, 3, 4, 6, 8, 12, 14})
    for (std::int64_t vectors : {1, 2, 3, 4})
      for (std::int64_t keys : {64, 128, 256, 512}) {
        if (tile_m * vectors + vectors + 1 > registers) continue;
        // Like the tile of a contraction: limited by multiply-adds or by loads. Adds the cost of key blocks that do not
        // stay in a cache, or that are short.
        const double r = static_cast<double>(tile_m), v = static_cast<double>(vectors),
                     step = std::max({r * v / 2, (r + v) / 2, 2 * v, 4.0}) + 0.5;
        result.push_back({{{"tile_m", tile_m}, {"tile_n", vectors * lanes}, {"keys", keys}},
                          step / (r * v) * (1 + 0.05 * std::abs(std::log2(static_cast<double>(keys) / most_keys)))});
      }
  return result;
}

}  // namespace kiln::cpu
