// Attention with few query rows per key head (one query, or some) on matrix instructions. Waves do not share keys, so
// every wave loads its own blocks of keys and values directly from memory into registers, a whole block at a time.
// Waves combine their results at the end in shared memory, and workgroups as in split_keys.
#include <algorithm>
#include <limits>
#include <optional>

#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/intrinsics.hpp"
#include "mlir_bridge/gpu/late_start.hpp"
#include "mlir_bridge/kinds/attention/gpu/appended_rows.hpp"
#include "mlir_bridge/kinds/attention/gpu/key_value_blocks.hpp"
#include "mlir_bridge/kinds/attention/gpu/narrow_shape.hpp"
#include "mlir_bridge/kinds/attention/gpu/split_keys.hpp"

namespace kiln::gpu {

namespace {

namespace arith = mlir::arith;

constexpr std::int64_t chunk = lane_layout::chunk;
constexpr std::int64_t joined_lanes = narrow_shape::joined_lanes;
constexpr std::int64_t most_early_rows = 64;
constexpr double lowest = -std::numeric_limits<double>::infinity();

class narrow_attention {
 public:
  narrow_attention(kernel_emitter& emitter, const attention_problem& problem, const matrix_instruction& instruction,
                   const lane_layout& layout, const narrow_shape& shape, const appended_rows* appended)
      : e(emitter),
        code(e.code),
        p(problem),
        unit(instruction),
        type(p.query.type().type),
        lanes(layout),
        appended_(appended),
        map(lanes.rows_are_a ? unit.b : unit.a),
        product(e, unit, {type, element_type::f32}),
        tile_rows(narrow_shape::rows_of_tile(p, lanes)),
        tiles(narrow_shape::tiles_of_rows(p, lanes)),
        used_parts(p.rows > lanes.part_rows ? lanes.row_parts : 1),
        split(shape.key_parts > 1 ? std::make_optional<split_keys>(e, p, shape.key_parts, tile_rows) : std::nullopt),
        group(e, "attention", {shape.key_parts * tiles, p.n.key_heads, p.n.batch}, shape.waves * e.target.gpu.wave) {}

  void emit() {
    found_results = group.lds(group.waves() * tile_rows * narrow_shape::pitch(p) * 4);
    found_states = group.lds(group.waves() * tile_rows * 2 * 4);
    at = p.at(code, group.block(2), group.block(1));
    lane_group = lanes.lane_group(code, group.lane());
    tile = code.rem(group.block(0), tiles), key_part = code.div(group.block(0), tiles),
    first_row = code.mul(tile, lanes.row_tile);
    const std::int64_t block = lanes.group_keys, of_round = group.waves() * block,
                       key_parts = split ? split->parts() : 1;
    const dim blocks = (p.keys + block - 1) / block, of_part = (blocks + key_parts - 1) / key_parts * block;
    const Value first = e.mul(key_part, of_part), own = code.add(first, code.mul(group.wave(), block));
    // The keys of the next block are loaded while the values of this one are. If there is one block only, all is loaded
    // at once, also the queries and what tells how many keys there are.
    const bool ahead = !of_part.is_static() || of_part.value() > of_round;
    if (appended_ && ahead) new_rows = group.lds((p.n.depth + p.n.value_depth) * 2, 16);
    values own_keys, own_values;
    if (waits_for_memory()) {
      own_keys = read_keys(own);
      if (!ahead) own_values = read_values(own);
      // What the new row is computed from depends on other loads, so it would be in the way.
      if (begins_early()) await_early();
      else if (appended_) issue_loads(e);
    }
    for (std::int64_t part = 0; part < used_parts; ++part) {
      rows.push_back(code.add(lanes.row_of_lane(code, group.lane()), part * lanes.part_rows));
      seen_rows.push_back(code.min(code.add(first_row, rows.back()), p.rows - 1));
      row_ends.push_back(p.end_of_row(code, at, seen_rows.back()));
    }
    read_queries();
    if (appended_) read_appended();
    if (waits_for_memory()) issue_loads(e);
    // What follows is a product of few rows, one workgroup for a compute unit. It may be placed as soon as nothing is
    // left to load.
    const bool admits = p.n.batch * p.n.queries <= most_early_rows, at_once = waits_for_memory() && !ahead;
    if (admits && at_once) group.admit_successors();
    Value end = e.min(e.add(first, of_part), p.keys);
    // Skip keys that no row of the tile sees.
    if (p.limit) end = code.min(end, p.ends_of_rows(group, at, first_row, tile_rows)[1]);
    else if (p.op.causal && (p.share == 1 || p.n.queries % lanes.row_tile == 0))
      end = code.min(end, p.end_of_row(code, at, code.min(code.add(first_row, tile_rows - 1), p.rows - 1)));
    if (appended_) store_appended();
    values state = initial_state();
    const std::size_t own_state = state.size();
    if (ahead && own_keys.empty()) own_keys = read_keys(own);
    if (ahead) state.insert(state.end(), own_keys.begin(), own_keys.end());
    state = code.loop(own, end, of_round, std::move(state), [&](Value first_key, std::span<const Value> carried) {
      values own_part(carried.begin(), carried.begin() + static_cast<std::ptrdiff_t>(own_state));
      if (!ahead && waits_for_memory()) return meet(first_key, std::move(own_part), own_keys, own_values, Value());
      if (!ahead) {
        const values all_keys = read_keys(first_key), all_values = read_values(first_key);
        return meet(first_key, std::move(own_part), all_keys, all_values, Value());
      }
      const values keys(carried.begin() + static_cast<std::ptrdiff_t>(own_state), carried.end()),
          values_of_block = read_values(first_key);
      if (waits_for_memory()) issue_loads(e);
      return meet(first_key, std::move(own_part), keys, values_of_block, code.add(first_key, of_round));
    });
    if (admits && !at_once) group.admit_successors();
    store(state);
    group.barrier();
    join_waves();
    if (split) split->join(group, {group.block(2), group.block(1), key_part, first_row}, tile, found_results);
    if (waits_for_memory()) keep_loads_in_place(e);
    if (appended_ && !begins_early()) start_after_predecessors(e);
    group.close();
    if (split) split->join_apart();
  }

 private:
  // With several tiles of rows, keys and values are in a near cache.
  bool waits_for_memory() const { return tiles == 1; }
  // The first keys are asked for while the product in front of the kernel, which computes the new row, still runs. More
  // workgroups than compute units would crowd on those that the product leaves free, and so would those of several
  // sequences, whose product has fewer workgroups than there are units (H200, bench/README.md).
  bool begins_early() const {
    const gpu_row& on = e.target.gpu;
    const std::int64_t workgroups = (split ? split->parts() : 1) * tiles * p.n.key_heads * p.n.batch;
    return appended_ && p.n.batch == 1 && waits_for_memory() && on.dependent_launch && workgroups <= on.compute_units;
  }
  // Waits for preceding kernels. Only caches, which this kernel appends to itself, have been read so far.
  void await_early() {
    for (std::size_t i = 0; i < e.arguments().size(); ++i)
      e.current().early_arguments.push_back(static_cast<std::uint32_t>(i));
    group.await_predecessors();
  }
  std::size_t parts() const { return static_cast<std::size_t>(used_parts); }
  std::int64_t depth_groups() const { return p.n.depth / lanes.group_keys; }
  // Sets of `chunk` tiles of the result.
  std::int64_t sets() const { return p.n.value_depth / (chunk * lanes.key_tile); }
  std::int64_t key_tiles() const { return lanes.tiles_of_group; }
  bool ragged() const { return !p.keys.is_static() || p.keys.value() % lanes.group_keys; }

  // The state: the maximum score and the sum of weights for each part, then the sums of the result.
  values initial_state() {
    mlir::Type f32 = code.builder.getF32Type();
    values state(parts(), code.number(f32, lowest));
    state.resize(2 * parts(), code.number(f32, 0));
    values zeros = product.zeros(sets() * chunk);
    state.insert(state.end(), zeros.begin(), zeros.end());
    return state;
  }

  // Parts of the instruction without rows are zero.
  fragment rows_fragment(values chunks) {
    chunks.resize(static_cast<std::size_t>(lanes.row_parts), code.integer(chunk_type(code), 0));
    return {std::move(chunks)};
  }

  void read_queries() {
    for (std::int64_t g = 0; g < depth_groups(); ++g) {
      Value depth = code.mul(code.add(lane_group, g * (lanes.group_keys / chunk)), chunk);
      values chunks;
      for (Value row : seen_rows)
        chunks.push_back(chunk_of(e, p.query, p.of_query(code, at, row, depth, chunk, chunk), {}));
      queries.push_back(rows_fragment(std::move(chunks)));
    }
  }

  Value depth_of_keys(std::int64_t g) { return code.mul(code.add(chunk_of_map(), g * map.chunks), chunk); }
  Value depth_of_values(std::int64_t s) { return code.mul(code.add(row_of_map(), s * lanes.key_tile), chunk); }

  void read_appended() {
    new_place = appended_->find_place(e, at);
    for (std::int64_t g = 0; g < depth_groups(); ++g) new_keys.push_back(appended_->key(e, at, depth_of_keys(g)));
    for (std::int64_t s = 0; s < sets(); ++s) new_values.push_back(appended_->value_of(e, at, depth_of_values(s)));
  }

  // The first wave of the first part stores the new rows to the caches. If several blocks are walked, it is the first
  // wave of each part, which leaves the rows in shared memory, so that they take no registers.
  void store_appended() {
    const Value is_first_part = code.equal(key_part, code.constant(0)),
                is_first_wave = code.equal(group.wave(), code.constant(0));
    const auto when_first = [&](Value number, const std::function<void()>& body) {
      code.when(both(code, is_first_wave, code.equal(number, code.constant(0))), body);
    };
    when_first(row_of_map(), [&] {
      for (std::int64_t g = 0; new_rows && g < depth_groups(); ++g)
        store_chunk(code, shared_key(g), new_keys[static_cast<std::size_t>(g)]);
      code.when(is_first_part, [&] {
        for (std::int64_t g = 0; g < depth_groups(); ++g)
          appended_->store_key(e, new_place, depth_of_keys(g), new_keys[static_cast<std::size_t>(g)]);
      });
    });
    when_first(chunk_of_map(), [&] {
      for (std::int64_t s = 0; new_rows && s < sets(); ++s)
        store_chunk(code, shared_value(s), new_values[static_cast<std::size_t>(s)]);
      code.when(is_first_part, [&] {
        for (std::int64_t s = 0; s < sets(); ++s)
          appended_->store_value(e, new_place, depth_of_values(s), new_values[static_cast<std::size_t>(s)]);
      });
    });
    if (new_rows) group.barrier();
  }
  // Where the chunks of the new key and value are that a lane uses.
  Value shared_key(std::int64_t g) { return byte_address(code, new_rows, code.mul(depth_of_keys(g), 2)); }
  Value shared_value(std::int64_t s) {
    return byte_address(code, new_rows, code.mul(code.add(depth_of_values(s), p.n.depth), 2));
  }

  // Returns what was read of a block with the new row in its place, if that is one of the block.
  values with_new_row(Value first_key, std::span<const Value> read, const std::function<values(values)>& put) {
    const values as_read(read.begin(), read.end());
    if (!appended_) return as_read;
    const Value from = code.less(first_key, code.add(new_place.key, 1)),
                inside = both(code, from, code.less(new_place.key, code.add(first_key, lanes.group_keys)));
    return code.branch(inside, [&] { return put(as_read); }, [&] { return as_read; });
  }
  values with_new_key(Value first_key, std::span<const Value> read) {
    return with_new_row(first_key, read, [&](values keys) {
      for (std::int64_t g = 0; g < depth_groups(); ++g) {
        const Value chunk = new_rows ? load_chunk(code, shared_key(g)) : new_keys[static_cast<std::size_t>(g)];
        for (std::int64_t t = 0; t < key_tiles(); ++t) {
          Value& key = keys[static_cast<std::size_t>(t * depth_groups() + g)];
          key = code.select(code.equal(key_of_tile(first_key, t), new_place.key), chunk, key);
        }
      }
      return keys;
    });
  }
  values with_new_value(Value first_key, std::span<const Value> read) {
    return with_new_row(first_key, read, [&](values of_block) {
      for (std::int64_t s = 0; s < sets(); ++s) {
        const Value new_value = new_rows ? load_chunk(code, shared_value(s)) : new_values[static_cast<std::size_t>(s)];
        for (std::int64_t k = 0; k < chunk; ++k) {
          Value& of_key = of_block[static_cast<std::size_t>(s * chunk + k)];
          of_key = code.select(code.equal(key_of_value(first_key, k), new_place.key), new_value, of_key);
        }
      }
      return of_block;
    });
  }

  // The numbers of the keys that a lane reads: of keys in tile t, of values in their order k.
  Value key_of_tile(Value first_key, std::int64_t t) {
    return code.add(first_key, code.add(row_of_map(), t * lanes.key_tile));
  }
  Value key_of_value(Value first_key, std::int64_t k) {
    return code.add(first_key, code.add(code.mul(chunk_of_map(), lanes.key_of_lane_group), lanes.key(0, k)));
  }

  Value row_of_map() { return code.rem(code.div(group.lane(), map.row_divisor), map.row_modulus); }
  Value chunk_of_map() { return code.rem(code.div(group.lane(), map.chunk_divisor), map.chunks); }

  // Returns the keys of a block: one chunk for each tile of keys and group of depths.
  values read_keys(Value first_key) {
    values result;
    for (std::int64_t t = 0; t < key_tiles(); ++t)
      for (std::int64_t g = 0; g < depth_groups(); ++g) {
        Value j = key_of_tile(first_key, t), depth = depth_of_keys(g);
        result.push_back(chunk_of(e, p.key, p.of_key(at, e.min(j, p.keys - 1), depth, chunk, chunk), {}));
      }
    return result;
  }

  // Returns the values of a block. Each set holds `chunk` keys of a lane, in the order of lane_layout::key, by `chunk`
  // depths. Tile d of a set holds the d-th depth of every lane.
  values read_values(Value first_key) {
    values result;
    for (std::int64_t s = 0; s < sets(); ++s) {
      Value depth = depth_of_values(s);
      for (std::int64_t k = 0; k < chunk; ++k) {
        Value j = key_of_value(first_key, k);
        Value inside = ragged() ? code.less(j, e.size(p.keys)) : Value();
        result.push_back(chunk_of(e, p.value_, p.of_value(at, e.min(j, p.keys - 1), depth, chunk, chunk), inside));
      }
    }
    return result;
  }

  void multiply(const fragment& rows_side, const fragment& other, std::span<Value> sums) {
    for (std::int64_t step = 0; step < product.steps_of_fragment(); ++step) {
      if (lanes.rows_are_a) product.add(rows_side, other, step, sums);
      else product.add(other, rows_side, step, sums);
    }
  }

  // Processes a block and returns the new state. If `next` is not null, loads the keys of the block there as soon as
  // the current ones have been used, and appends them to the state.
  values meet(Value first_key, values state, std::span<const Value> read_keys_of, std::span<const Value> read_values_of,
              Value next) {
    const values keys = with_new_key(first_key, read_keys_of);
    const auto per_tile = static_cast<std::size_t>(product.values_per_tile());
    schedule_barrier(code, e.target.family, passing::arithmetic);
    values products = product.zeros(key_tiles());
    for (std::int64_t g = 0; g < depth_groups(); ++g)
      for (std::int64_t t = 0; t < key_tiles(); ++t)
        multiply(queries[static_cast<std::size_t>(g)], {{keys[static_cast<std::size_t>(t * depth_groups() + g)]}},
                 std::span(products).subspan(static_cast<std::size_t>(t) * per_tile, per_tile));
    values following = next ? read_keys(next) : values();
    if (next && waits_for_memory()) issue_loads(e);
    schedule_barrier(code, e.target.family, passing::arithmetic);

    const bool masked = p.ends_early() || ragged();
    const std::int64_t run = lanes.run();
    values factors(static_cast<std::size_t>(lanes.row_parts), code.number(code.builder.getF32Type(), 1)), weights;
    for (std::size_t part = 0; part < parts(); ++part) {
      values scores;
      for (std::int64_t first = 0; first < chunk; first += run) {
        values raw;
        for (std::int64_t i = 0; i < run; ++i)
          raw.push_back(lanes.element(code, products, static_cast<std::int64_t>(part), 0, first + i));
        Value j = code.add(first_key, code.add(code.mul(lane_group, lanes.key_of_lane_group), lanes.key(0, first)));
        for (Value v : p.scores(e, at, seen_rows[part], row_ends[part], j, raw, masked)) scores.push_back(v);
      }
      Value top = state[part];
      for (Value v : scores) top = code.make<arith::MaxNumFOp>(top, v);
      for (std::int64_t mask : lanes.row_masks()) top = code.make<arith::MaxNumFOp>(top, group.shuffle_xor(top, mask));
      // If no key has been seen yet, subtract 0, because -inf - (-inf) is NaN.
      Value none = code.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, top, code.number(top.getType(), lowest));
      Value shift = code.select(none, code.number(top.getType(), 0), top);
      factors[part] = power_of_two(code, code.make<arith::SubFOp>(state[part], shift));
      Value sum = code.make<arith::MulFOp>(state[parts() + part], factors[part]);
      for (Value& v : scores) {
        v = power_of_two(code, code.make<arith::SubFOp>(v, shift));
        sum = code.make<arith::AddFOp>(sum, v);
      }
      weights.push_back(reinterpret(code, code.to_storage(code.from_lanes(scores), type), chunk_type(code)));
      state[part] = top, state[parts() + part] = sum;
    }

    values result(state.begin() + static_cast<std::ptrdiff_t>(2 * parts()), state.end());
    lanes.scale(code, result, factors);
    const fragment rows_side = rows_fragment(std::move(weights));
    const values of_block = with_new_value(first_key, read_values_of);
    for (std::int64_t s = 0; s < sets(); ++s) {
      values columns = transposed(code, std::span(of_block).subspan(static_cast<std::size_t>(s * chunk), chunk), type);
      for (std::int64_t d = 0; d < chunk; ++d)
        multiply(rows_side, {{columns[static_cast<std::size_t>(d)]}},
                 std::span(result).subspan(static_cast<std::size_t>(s * chunk + d) * per_tile, per_tile));
    }
    std::copy(result.begin(), result.end(), state.begin() + static_cast<std::ptrdiff_t>(2 * parts()));
    state.insert(state.end(), following.begin(), following.end());
    return state;
  }

  // Stores the result of a wave to shared memory.
  void store(const values& state) {
    const std::span<const Value> sums = std::span(state).subspan(2 * parts());
    // Registers of a row in a tile.
    const std::int64_t registers = lanes.key_tile / lanes.lane_groups;
    for (std::size_t part = 0; part < parts(); ++part) {
      Value sum = state[parts() + part];
      for (std::int64_t mask : lanes.row_masks()) sum = code.make<arith::AddFOp>(sum, group.shuffle_xor(sum, mask));
      Value slot = code.add(code.mul(group.wave(), tile_rows), rows[part]);
      code.when(code.less(rows[part], code.min(code.sub(code.constant(p.rows), first_row), tile_rows)), [&] {
        code.store(found_states, code.mul(slot, 2), element_type::f32, code.from_lanes(std::array{state[part], sum}),
                   2);
        for (std::int64_t s = 0; s < sets(); ++s)
          for (std::int64_t r = 0; r < registers; ++r) {
            Value row_of_tile = code.add(code.mul(lane_group, lanes.key_of_lane_group), lanes.key(0, r));
            Value depth = code.mul(code.add(row_of_tile, s * lanes.key_tile), chunk);
            for (std::int64_t first = 0; first < chunk; first += joined_lanes) {
              values elements;
              for (std::int64_t d = first; d < first + joined_lanes; ++d) {
                const std::int64_t tile = s * chunk + d;
                elements.push_back(lanes.element(code, sums, static_cast<std::int64_t>(part),
                                                 tile / lanes.tiles_of_group,
                                                 tile % lanes.tiles_of_group * registers + r));
              }
              code.store(found_results, code.add(code.add(code.mul(slot, narrow_shape::pitch(p)), depth), first),
                         element_type::f32, code.from_lanes(elements), joined_lanes);
            }
          }
      });
    }
  }

  // Combines the results of all waves and stores them: to the output, or to the memory from which workgroups are
  // combined.
  void join_waves() {
    const std::int64_t of_row = p.n.value_depth / joined_lanes;
    Value items = code.mul(code.min(code.sub(code.constant(p.rows), first_row), tile_rows), of_row);
    code.loop(group.thread(), items, group.threads(), [&](Value item) {
      Value row = code.div(item, of_row), depth = code.mul(code.rem(item, of_row), joined_lanes);
      std::vector<row_part> found;
      for (std::int64_t w = 0; w < group.waves(); ++w) {
        Value slot = code.add(row, w * tile_rows),
              state = code.load(found_states, code.mul(slot, 2), element_type::f32, 2, 2);
        found.push_back({code.lane(state, 0), code.lane(state, 1),
                         code.load(found_results, code.add(code.mul(slot, narrow_shape::pitch(p)), depth),
                                   element_type::f32, joined_lanes, joined_lanes)});
      }
      const row_part all = join_parts(code, no_keys(code, joined_lanes), found);
      if (!split) return store_row(e, p, at, code.add(first_row, row), depth, all);
      const split_keys::place of_part{group.block(2), group.block(1), key_part, code.add(first_row, row)};
      code.when(code.equal(depth, code.constant(0)), [&] { split->store_state(of_part, all.top, all.sum); });
      values elements;
      for (std::int64_t i = 0; i < joined_lanes; ++i) elements.push_back(code.lane(all.result, i));
      split->store_result(of_part, depth, elements);
    });
  }

  kernel_emitter& e;
  code_builder& code;
  const attention_problem& p;
  const matrix_instruction& unit;
  element_type type;
  const lane_layout& lanes;
  const appended_rows* appended_;  // null if the kernel appends none
  // The map of the factor that does not hold the rows.
  const factor_map& map;
  matrix_product product;
  std::int64_t tile_rows, tiles;
  // Number of a lane's row parts that exist.
  std::int64_t used_parts;
  std::optional<split_keys> split;
  workgroup group;
  Value found_results, found_states, lane_group, tile, key_part, first_row;
  attention_problem::place at;
  // For each part: its row in the tile, its row in the head, the end of its keys.
  values rows, seen_rows, row_ends;
  // One for each group of depths.
  std::vector<fragment> queries;
  // Of the key that is appended: its place, the chunks of a lane of this key and its value, and shared memory with
  // both, null if they stay in registers.
  appended_rows::place new_place;
  Value new_rows;
  values new_keys, new_values;
};

}  // namespace

std::vector<candidate> narrow_attention_space(kernel_emitter& e, const attention_problem& p) {
  std::vector<candidate> result;
  const std::vector<choice> choices{{"narrow", {1}}, {"waves", {2, 4, 8}}, {"key_parts", {1, 2, 4, 8, 16, 32}}};
  for (const kernel_configuration& configuration : combinations(choices))
    if (auto shape = choose_narrow_shape(e, p, configuration);
        shape && shape->waves == configuration.at("waves") && shape->key_parts == configuration.at("key_parts")) {
      const lane_layout lanes(*attention_instruction(e, p.query.type().type), e.target.family, e.target.gpu.wave);
      result.push_back({configuration, cost_of(e, p, lanes, *shape)});
    }
  return result;
}

bool emit_open_narrow_attention(kernel_emitter& e, const attention_problem& problem) {
  // Parts are chosen for a long past: with a short one, some workgroups have nothing to do.
  constexpr std::int64_t long_past = 4096;
  if (!problem.batch.is_static() || !problem.queries.is_static()) return false;
  attention_problem chosen = problem;
  chosen.n.keys = long_past;
  return emit_narrow_attention(e, chosen);
}

bool emit_narrow_attention(kernel_emitter& e, const attention_problem& problem) {
  const auto shape = choose_narrow_shape(e, problem, e.configuration);
  if (!shape) return false;
  const matrix_instruction& unit = *attention_instruction(e, problem.query.type().type);
  const lane_layout lanes(unit, e.target.family, e.target.gpu.wave);
  auto appended = appended_rows::find(e, problem);
  // LLVM spills where the new rows meet blocks that fill more than half of the registers (RDNA 4).
  const bool has_room = e.target.family != target_family::amdgpu ||
                        2 * narrow_shape::registers(e, problem, lanes) <= e.target.gpu.registers;
  if (narrow_shape::tiles_of_rows(problem, lanes) > 1 || !has_room) appended.reset();
  if (!appended) {
    e.emit_inner_anchors();
    narrow_attention(e, problem, unit, lanes, *shape, nullptr).emit();
    return true;
  }
  appended->begin(e);
  // Appending takes registers, so that there is room for more than one workgroup on a compute unit if they are small.
  // With four waves instead of eight, a decoder's step for 8 sequences takes 1.140 instead of 1.156 ms
  // (bench/README.md).
  constexpr std::int64_t most_waves = 4;
  kernel_configuration smaller = e.configuration;
  smaller.try_emplace("waves", most_waves);
  auto beside = shape->waves > most_waves ? choose_narrow_shape(e, problem, smaller) : shape;
  if (!beside) beside = shape;
  // One of them on each unit does not keep the memory busy, which only shows where parts are long: with two or more, a
  // step of 8 or 32 sequences after 32,000 ids takes 3.75 instead of 3.98 ms and 11.95 instead of 12.13 (H100).
  constexpr std::int64_t long_part = 4096;
  const std::int64_t heads = problem.n.batch * problem.n.key_heads,
                     parts = std::max<std::int64_t>(2, 2 * e.target.gpu.compute_units / heads);
  if (beside->waves <= most_waves && beside->key_parts < parts && problem.n.keys / parts >= long_part &&
      !e.configuration.contains("key_parts"))
    beside->key_parts = parts;
  narrow_attention(e, problem, unit, lanes, *beside, &*appended).emit();
  return true;
}

}  // namespace kiln::gpu
