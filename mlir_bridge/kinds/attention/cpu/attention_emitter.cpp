#include "mlir_bridge/kinds/attention/cpu/attention_emitter.hpp"

#include <bit>
#include <limits>
#include <numeric>

#include "ir/prefix_mask.hpp"

namespace kiln::cpu {

namespace {

constexpr std::int64_t direct_tile_rows = 4, tile_rows = 6, tile_vectors = 2;
// Stack memory for the queries and results of a tile, and for its scores.
constexpr std::int64_t row_bytes = 24 << 10, score_bytes = 24 << 10;
// Number of multiply-adds that makes a work item worth scheduling.
constexpr std::int64_t item_products = 1 << 19;
// Up to this many rows, the rows that the last tile lacks are a notable share, so the tile is chosen to waste few.
constexpr std::int64_t few_rows = 64, most_tile_rows = 8;

}  // namespace

attention_emitter::attention_emitter(kernel_emitter& emitter)
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

void attention_emitter::emit() {
  const std::int64_t group_count = n.batch * n.key_heads;
  if (group_count * rows * n.value_depth == 0) return;
  direct = rows <= most_direct_rows || n.keys == 0;
  tile = direct ? tile_shape{std::min(rows, direct_tile_rows), 1, register_lanes(e, sum_type)} : packed_tile();
  tile.rows = std::clamp<std::int64_t>(
      row_bytes / ((n.depth + n.value_depth) * static_cast<std::int64_t>(storage_bytes(sum_type, 1))), 1, tile.rows);
  if (!direct) by_lane = find_lane_products(e.target, query.type().type, key.type().type);
  if (by_lane && !by_lane->vectors) by_lane.reset();
  values_at = by_lane ? paired_values(group_count) : gathered_values(group_count);
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
  if (chunk < n.keys) chunk = std::max(step, std::min(most, choose(e.configuration, "keys", most_keys) / step * step));

  const std::int64_t tiles = (rows + tile.rows - 1) / tile.rows,
                     products = std::max<std::int64_t>(1, tile.rows * n.keys * (n.depth + n.value_depth));
  const std::int64_t tiles_per_item = std::clamp<std::int64_t>(item_products / products, 1, tiles),
                     blocks = (tiles + tiles_per_item - 1) / tiles_per_item;
  if (chunk < n.keys)
    tiles_at_once = std::clamp<std::int64_t>(
        row_bytes / (tile.rows * (n.depth + n.value_depth) * static_cast<std::int64_t>(storage_bytes(sum_type, 1))), 1,
        tiles_per_item);
  e.begin_stage("attention", group_count * blocks);
  query_tile = code.stack(query_type(), tiles_at_once * tile.rows * query_pitch());
  scores = code.stack(sum_type, tile.rows * chunk);
  if (by_lane) weights = code.stack(value_.type().type, tile.rows * weight_pitch());
  tops = code.stack(sum_type, tiles_at_once * tile.rows);
  sums = code.stack(sum_type, tiles_at_once * tile.rows);
  corrections = code.stack(sum_type, tile.rows);
  results = chunk < n.keys ? code.stack(sum_type, tiles_at_once * tile.rows * n.value_depth) : Value();
  // Both products have the same rows. Use as many vectors of values as registers allow.
  const std::int64_t room = std::max<std::int64_t>(1, (e.target.vector_registers - 2) / (tile.rows + 1)),
                     lanes =
                         std::min(register_lanes(e, sum_type),
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
    code.loop(first, last, tiles_at_once, [&](Value t) { emit_tiles(t, code.min(code.add(t, tiles_at_once), last)); });
  });
  e.end_stage();
}

tile_shape attention_emitter::packed_tile() const {
  const std::int64_t most = std::max<std::int64_t>(1, choose(e.configuration, "tile_m", standard_rows())),
                     tiles = (rows + most - 1) / most;
  const std::int64_t lanes = std::min(register_lanes(e, sum_type),
                                      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n.keys))));
  const std::int64_t vectors = std::clamp<std::int64_t>(choose(e.configuration, "tile_n", tile_vectors * lanes) / lanes,
                                                        1, (n.keys + lanes - 1) / lanes);
  return {(rows + tiles - 1) / tiles, vectors, lanes};
}

std::int64_t attention_emitter::standard_rows() const {
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

void attention_emitter::pack_keys(std::int64_t group_count) {
  packed.groups = group_count;
  packed.by_lane = by_lane;
  packed.steps = steps_of(by_lane, n.depth);
  packed.columns = n.keys;
  const right_source source{key, static_cast<std::int64_t>(head_axes(op.key_layout, key.type().rank()).position),
                            [&](Value g, Value, Value step, Value column) {
                              values at = code.delinearize(g, groups);
                              return in_layout(at, column, step, op.key_layout);
                            }};
  if (by_lane) pack_right_lanes(e, packed, 1, n.depth, tile, source);
  else pack_right(e, packed, 1, tile, source);
}

void attention_emitter::emit_tiles(Value first, Value last) {
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

void attention_emitter::add_chunk(Value first, Value count) {
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

Value attention_emitter::keys_seen() {
  if (!op.causal || n.queries == 1) return code.constant(n.keys);
  Value last_row = code.min(code.add(first_row, tile.rows - 1), rows - 1),
        last = code.rem(last_row, code.constant(n.queries));
  if (share > 1)
    last = code.select(
        code.equal(code.div(first_row, code.constant(n.queries)), code.div(last_row, code.constant(n.queries))), last,
        code.constant(n.queries - 1));
  return code.min(code.max(code.add(last, n.keys - n.queries + 1), 0), n.keys);
}

void attention_emitter::sweep(Value count, std::int64_t lanes, const std::function<void(Value, std::int64_t)>& body) {
  Value even = code.mul(code.div(count, code.constant(lanes)), lanes);
  code.loop(code.constant(0), even, lanes, [&](Value i) { body(i, lanes); });
  code.loop(even, count, 1, [&](Value i) { body(i, 1); });
}

attention_emitter::query_row attention_emitter::row_at(Value row) {
  row = code.min(row, rows - 1);
  query_row result{group_at, code.rem(row, code.constant(n.queries))};
  result.head.back() = code.add(code.mul(result.head.back(), share), code.div(row, code.constant(n.queries)));
  return result;
}

std::pair<Value, std::int64_t> attention_emitter::place_of_group(head_layout layout, std::int64_t positions,
                                                                 std::int64_t depth) {
  if (layout == head_layout::heads_first) return {code.mul(group, positions * depth), depth};
  values digits = code.delinearize(group, std::vector<std::int64_t>{n.batch, n.key_heads});
  return {code.add(code.mul(digits[0], n.key_heads * positions * depth), code.mul(digits[1], depth)),
          n.key_heads * depth};
}

}  // namespace kiln::cpu
