// Attention with matrix instructions. Scores, weights and results stay in registers; keys and values are staged in
// shared memory. f32 numbers are multiplied as sums of bf16 parts (gpu/split_f32.hpp), with new sums for each block of
// keys, because matrix units round long sums toward zero.
#include <algorithm>
#include <functional>
#include <limits>
#include <optional>

#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/intrinsics.hpp"
#include "mlir_bridge/kinds/attention/gpu/attention.hpp"
#include "mlir_bridge/kinds/attention/gpu/key_value_blocks.hpp"
#include "mlir_bridge/kinds/attention/gpu/matrix_shape.hpp"
#include "mlir_bridge/kinds/attention/gpu/split_keys.hpp"

namespace kiln::gpu {

namespace {

namespace arith = mlir::arith;

constexpr std::int64_t chunk = lane_layout::chunk;
constexpr double lowest = -std::numeric_limits<double>::infinity();

// Emits a stage that splits all keys and values into parts, and returns their blocks as they are in shared memory.
buffer split_keys_and_values(kernel_emitter& e, const attention_problem& p, const lane_layout& lanes,
                             std::int64_t key_block) {
  constexpr std::int64_t threads = 256;
  const std::int64_t blocks = ceil_div(p.n.keys, key_block),
                     bytes = key_value_blocks::shared_bytes(p, lanes, key_block);
  const buffer memory = e.add_scratch(element_type::bf16, {p.n.batch, p.n.key_heads, blocks, bytes / 2});
  attention_group place(e, p, blocks, threads);
  code_builder& code = e.code;
  const Value number =
      code.add(code.mul(code.add(code.mul(place.batch, p.n.key_heads), place.key_head), blocks), place.tile);
  key_value_blocks(e, p, lanes, place.group, key_block)
      .move(p.at(code, place.batch, place.key_head), code.mul(place.tile, key_block),
            byte_address(code, e.pointer(memory), code.mul(number, bytes)));
  place.group.close();
  return memory;
}

class matrix_attention {
 public:
  matrix_attention(kernel_emitter& emitter, const attention_problem& problem, const matrix_instruction& instruction,
                   const lane_layout& layout, const matrix_attention_shape& shape, const dim& used)
      : e(emitter),
        code(e.code),
        p(problem),
        unit(instruction),
        type(p.query.type().type),
        lanes(layout),
        product(e, unit, {unit.factor, element_type::f32}),
        key_block(shape.keys),
        stored_queries(shape.stored_queries),
        whole_queries(shape.whole_queries),
        together(shape.together),
        split_blocks(shape.split_first ? std::make_optional(split_keys_and_values(e, p, lanes, key_block))
                                       : std::nullopt),
        tiles(ceil_div(p.all_rows, shape.waves * lanes.row_tile)),
        split(shape.key_parts > 1 ? std::make_optional<split_keys>(e, p, shape.key_parts, shape.waves * lanes.row_tile)
                                  : std::nullopt),
        own_place(e, p, tiles * shape.key_parts, shape.waves * e.target.gpu.wave, used),
        group(own_place.group),
        blocks(e, p, lanes, group, key_block) {}

  void emit() {
    blocks.allocate();
    at = p.at(code, own_place.batch, own_place.key_head);
    lane_group = lanes.lane_group(code, group.lane());
    const std::int64_t tile_rows = group.waves() * lanes.row_tile;
    // With a causal mask the last rows have the most work, so they start first.
    Value number = p.is_open() ? own_place.tile : e.rem(own_place.tile, tiles),
          tile = p.ends_early() ? code.sub(e.size(tiles - 1), number) : number;
    key_part = p.is_open() ? code.constant(0) : e.div(own_place.tile, tiles);
    Value first_row = code.mul(tile, tile_rows);
    Value own =
        code.add(code.add(first_row, code.mul(group.wave(), lanes.row_tile)), lanes.row_of_lane(code, group.lane()));
    for (std::int64_t part = 0; part < lanes.row_parts; ++part) {
      Value row = code.add(own, part * lanes.part_rows);
      valid_rows.push_back(divides(tile_rows, p.all_rows) ? Value() : code.less(row, e.size(p.all_rows)));
      rows.push_back(e.min(row, p.all_rows - 1));
      row_ends.push_back(p.end_of_row(code, at, rows.back()));
    }
    read_queries();
    // Keys up to `whole` are seen by all rows of the workgroup and need no mask. Keys from `end` on are seen by none.
    Value whole = e.size(p.keys / key_block * key_block), end = e.size(p.keys);
    if (p.limit) {
      const auto ends = p.ends_of_rows(group, at, first_row, tile_rows);
      whole = code.mul(code.div(ends[0], key_block), key_block), end = ends[1];
    } else if (p.op.causal && (p.share == 1 || divides(tile_rows, p.queries))) {
      Value last = e.min(code.add(first_row, tile_rows - 1), p.all_rows - 1);
      end = code.max(p.end_of_row(code, at, last), 0);
      whole = code.mul(
          code.div(code.min(code.max(p.end_of_row(code, at, e.min(first_row, p.all_rows - 1)), 0), end), key_block),
          key_block);
    } else if (p.op.causal) {
      whole = code.constant(0);
    }
    Value first = code.constant(0);
    if (split) {
      const std::int64_t of_part = ceil_div(ceil_div(p.n.keys, key_block), split->parts()) * key_block;
      first = code.mul(key_part, of_part);
      Value last = code.add(first, of_part);
      whole = code.max(code.min(whole, last), first), end = code.min(end, last);
    }
    values state = initial_state();
    if (prefetches()) {
      blocks.fetch(at, first);
      blocks.store();
      group.barrier();
    } else if (split_blocks) {
      blocks.copy_keys(split_block(first));
    }
    // Of an open number of keys all blocks are masked, which takes a few more instructions but half the code.
    if (!p.keys.is_static()) whole = first;
    else if (shares_products()) masked_from = whole, whole = first;
    else state = walk(first, whole, std::move(state), false);
    state = walk(whole, end, std::move(state), true);
    write(state);
    if (split && split_blocks) finish_copies();
    if (split) split->join(group, {own_place.batch, own_place.key_head, key_part, first_row}, tile, blocks.memory());
    group.close();
    if (split) split->join_apart();
  }

 private:
  std::int64_t parts() const { return lanes.row_parts; }
  std::int64_t depth_groups() const { return blocks.depth_chunks() * chunk / lanes.group_keys; }
  std::int64_t key_groups() const { return key_block / lanes.group_keys; }
  std::int64_t result_groups() const { return blocks.value_depth() / lanes.group_keys; }

  // The state: the maximum score and the sum of weights for each part, then the sums of the result.
  values initial_state() {
    mlir::Type f32 = code.builder.getF32Type();
    values state(static_cast<std::size_t>(parts()), code.number(f32, lowest));
    state.resize(2 * state.size(), code.number(f32, 0));
    values zeros = product.zeros(result_groups() * lanes.tiles_of_group);
    state.insert(state.end(), zeros.begin(), zeros.end());
    return state;
  }

  void read_queries() {
    const factor_map& map = query_map();
    const std::int64_t of_group = lanes.group_keys / chunk;  // chunks
    if (stored_queries) query_memory = group.lds(query_owners() * stored_chunks() * depth_groups() * chunk_bytes, 128);
    for (std::int64_t g = 0; g < depth_groups(); ++g) {
      values read;
      for (std::int64_t part = 0; part < parts(); ++part)
        for (std::int64_t c = 0; c < (map.whole_row ? of_group : 1); ++c) {
          Value at_chunk = map.whole_row ? code.constant(g * of_group + c) : code.add(lane_group, g * of_group);
          read.push_back(query_chunk(rows[static_cast<std::size_t>(part)], at_chunk));
        }
      if (!stored_queries) {
        queries.push_back(in_parts(read));
        continue;
      }
      // All queries at once would take more registers than there are.
      if (g % 4 == 0) schedule_barrier(code, e.target.family, passing::nothing);
      std::int64_t number = g * stored_chunks();
      if (whole_queries) {
        for (Value v : read)
          for (std::int64_t half = 0; half < 2; ++half)
            store_chunk(code, stored_query(number++), part_of(code, v, half * chunk / 2, chunk / 2));
        continue;
      }
      for (const fragment& f : in_parts(read))
        for (Value v : f.chunks) store_chunk(code, stored_query(number++), v);
    }
  }

  // One fragment for each part.
  std::vector<fragment> in_parts(std::span<const Value> chunks) {
    std::vector<fragment> of_parts(static_cast<std::size_t>(parts_of(type)));
    for (Value v : chunks) {
      const values split = part_chunks(code, v);
      for (std::size_t i = 0; i < split.size(); ++i) of_parts[i].chunks.push_back(split[i]);
    }
    return of_parts;
  }

  const factor_map& query_map() const { return lanes.rows_are_a ? unit.a : unit.b; }
  // Chunks of a group of depths that a lane needs.
  std::int64_t chunks_of_lane() const { return parts() * (query_map().whole_row ? lanes.group_keys / chunk : 1); }
  // Chunks of a group of depths that each owner stores.
  std::int64_t stored_chunks() const { return chunks_of_lane() * (whole_queries ? 2 : parts_of(type)); }
  // Each thread reads only what it has stored itself, or what all lanes of its row have.
  std::int64_t query_owners() const { return query_map().whole_row ? group.waves() * lanes.row_tile : group.threads(); }
  Value stored_query(std::int64_t number) {
    const Value owner = query_map().whole_row
                            ? code.add(code.mul(group.wave(), lanes.row_tile), lanes.row_of_lane(code, group.lane()))
                            : group.thread();
    Value own = byte_address(code, query_memory, code.mul(owner, chunk_bytes));
    return byte_address(code, own, number * query_owners() * chunk_bytes);
  }

  std::vector<fragment> queries_of(std::int64_t g) {
    if (!stored_queries) return queries[static_cast<std::size_t>(g)];
    std::int64_t number = g * stored_chunks();
    if (whole_queries) {
      const mlir::Type half = code_builder::with_lanes(code.builder.getF32Type(), chunk / 2);
      values read;
      for (std::int64_t part = 0; part < parts(); ++part, number += 2)
        read.push_back(joined(code, values{reinterpret(code, load_chunk(code, stored_query(number)), half),
                                           reinterpret(code, load_chunk(code, stored_query(number + 1)), half)}));
      return in_parts(read);
    }
    std::vector<fragment> of_parts(static_cast<std::size_t>(parts_of(type)));
    for (fragment& f : of_parts)
      for (std::int64_t c = 0; c < chunks_of_lane(); ++c) f.chunks.push_back(load_chunk(code, stored_query(number++)));
    return of_parts;
  }

  Value query_chunk(Value row, Value number) {
    Value depth = code.mul(number, chunk), inside;
    if (p.n.depth % lanes.group_keys)
      inside = code.less(depth, code.constant(p.n.depth)), depth = code.min(depth, p.n.depth - chunk);
    return chunk_of(e, p.query, p.of_query(code, at, row, depth, chunk, chunk), inside);
  }

  void multiply(const fragment& rows_side, const fragment& other, std::span<Value> sums) {
    for (std::int64_t step = 0; step < product.steps_of_fragment(); ++step) {
      if (lanes.rows_are_a) product.add(rows_side, other, step, sums);
      else product.add(other, rows_side, step, sums);
    }
  }

  // Adds the products of parts for several tiles of the other factor: those of the largest parts to `sums`, the others,
  // which are small, to `small`. Products of one tile wait for each other, so the tiles take turns.
  void multiply(const std::vector<fragment>& rows_side, const std::vector<std::vector<fragment>>& others,
                std::span<Value> sums, std::span<Value> small) {
    const std::size_t per_tile = sums.size() / others.size();
    for (const part_product& pair : part_products)
      for (std::int64_t step = 0; step < product.steps_of_fragment(); ++step)
        for (std::size_t t = 0; t < others.size(); ++t) {
          const fragment &of_rows = rows_side[static_cast<std::size_t>(pair.a)],
                         &other = others[t][static_cast<std::size_t>(pair.b)];
          const std::span<Value> to = (pair.a + pair.b == 0 ? sums : small).subspan(t * per_tile, per_tile);
          if (lanes.rows_are_a) product.add(of_rows, other, step, to);
          else product.add(other, of_rows, step, to);
        }
  }

  void add_to(std::span<Value> sums, std::span<const Value> others) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = code.make<arith::AddFOp>(sums[i], others[i]);
  }

  // Adds weights * values to the result.
  void add_values(const std::vector<std::vector<fragment>>& weights, std::span<Value> result) {
    const factor_map& map = lanes.rows_are_a ? unit.b : unit.a;
    const auto per_tile = static_cast<std::size_t>(product.values_per_tile());
    const std::int64_t tile_count = result_groups() * lanes.tiles_of_group;
    if (type != element_type::f32) {
      for (std::int64_t g = 0; g < key_groups(); ++g)
        for (std::int64_t t = 0; t < tile_count; ++t)
          multiply(weights[static_cast<std::size_t>(g)][0], blocks.depths(map, t * lanes.key_tile, g)[0],
                   result.subspan(static_cast<std::size_t>(t) * per_tile, per_tile));
      return;
    }
    for (std::int64_t first = 0; first < tile_count; first += together) {
      const std::int64_t count = std::min(together, tile_count - first);
      values sums = product.zeros(count), small = product.zeros(count);
      for (std::int64_t g = 0; g < key_groups(); ++g) {
        std::vector<std::vector<fragment>> tiles_of;
        for (std::int64_t t = 0; t < count; ++t)
          tiles_of.push_back(blocks.depths(map, (first + t) * lanes.key_tile, g));
        multiply(weights[static_cast<std::size_t>(g)], tiles_of, sums, small);
      }
      add_to(sums, small);
      add_to(result.subspan(static_cast<std::size_t>(first) * per_tile, sums.size()), sums);
    }
  }

  // --- the loop

  // Products of parts are long code. Where only the last of few blocks is masked, all blocks share it: ptxas takes 0.34
  // instead of 0.57 s for 1,500 keys, and the kernel at most 3 % longer.
  bool shares_products() const {
    constexpr std::int64_t few = 2048;
    return type == element_type::f32 && e.target.family == target_family::nvidia && !p.limit && !p.op.causal &&
           p.n.keys <= few && p.n.keys % key_block != 0;
  }
  bool saves_registers() const { return stored_queries && e.target.family == target_family::amdgpu; }
  // Returns true if the next block is loaded while one is processed. This needs enough registers (roughly, in 32-bit
  // registers per thread).
  bool prefetches() const {
    const factor_map& map = lanes.rows_are_a ? unit.a : unit.b;
    const std::int64_t wave = group.wave_size(), copies = map.whole_row ? lanes.lane_groups : 1;
    if (type == element_type::f32 || saves_registers()) return false;
    const std::int64_t of_queries = stored_queries ? 0 : depth_groups() * parts() * copies * 4,
                       of_result = lanes.row_tile * blocks.value_depth() / wave,
                       of_scores = lanes.row_tile * key_block / wave;
    return of_queries + of_result + of_scores + of_scores * copies / 2 + blocks.fetched_registers() <=
           e.target.gpu.registers * (map.whole_row ? 50 : 60) / 100;
  }

  // With prefetching, shared memory already holds the block at `from`.
  values walk(Value from, Value to, values state, bool masked) {
    const bool ahead = prefetches();
    if (split_blocks)
      return code.loop(from, to, key_block, std::move(state), [&](Value first_key, std::span<const Value> carried) {
        return block(first_key, values(carried.begin(), carried.end()), masked);
      });
    return code.loop(from, to, key_block, std::move(state), [&](Value first_key, std::span<const Value> carried) {
      if (ahead)
        blocks.fetch(at, code.add(first_key, key_block)), schedule_barrier(code, e.target.family, passing::arithmetic);
      else blocks.load(at, first_key, saves_registers()), group.barrier();
      values next = block(first_key, values(carried.begin(), carried.end()), masked);
      if (ahead) schedule_barrier(code, e.target.family, passing::nothing);
      group.barrier();
      if (ahead) blocks.store(), group.barrier();
      return next;
    });
  }

  // The block of keys and values at first_key, or the last one.
  Value split_block(Value first_key) {
    const std::int64_t count = ceil_div(p.n.keys, key_block), bytes = blocks.shared_bytes();
    Value number = code.min(code.div(first_key, key_block), count - 1),
          head = code.add(code.mul(own_place.batch, p.n.key_heads), own_place.key_head);
    return byte_address(code, e.pointer(*split_blocks), code.mul(code.add(code.mul(head, count), number), bytes));
  }

  void finish_copies() {
    call_intrinsic(code, "llvm.nvvm.cp.async.wait.group", {}, {code.integer(code.builder.getI32Type(), 0)});
    group.barrier();
  }

  // With split blocks, the values of this block arrive while scores are multiplied, and the next block's keys while
  // values are.
  values block(Value first_key, values state, bool masked) {
    if (split_blocks) {
      finish_copies();
      blocks.copy_values(split_block(first_key));
    }
    const factor_map& map = lanes.rows_are_a ? unit.b : unit.a;
    const auto per_tile = static_cast<std::size_t>(product.values_per_tile());
    const std::int64_t tile_count = key_block / lanes.key_tile;
    values scores = product.zeros(tile_count), small = type == element_type::f32 ? scores : values();
    for (std::int64_t g = 0; g < depth_groups(); ++g) {
      const std::vector<fragment> of_rows = queries_of(g);
      for (std::int64_t t = 0; t < tile_count && small.empty(); ++t)
        multiply(of_rows[0], blocks.keys(map, t * lanes.key_tile, g)[0],
                 std::span(scores).subspan(static_cast<std::size_t>(t) * per_tile, per_tile));
      for (std::int64_t first = 0; first < tile_count && !small.empty(); first += together) {
        const std::int64_t count = std::min(together, tile_count - first);
        const auto begin = static_cast<std::size_t>(first) * per_tile,
                   size = static_cast<std::size_t>(count) * per_tile;
        std::vector<std::vector<fragment>> tiles_of;
        for (std::int64_t t = 0; t < count; ++t) tiles_of.push_back(blocks.keys(map, (first + t) * lanes.key_tile, g));
        multiply(of_rows, tiles_of, std::span(scores).subspan(begin, size), std::span(small).subspan(begin, size));
      }
    }
    if (!small.empty()) add_to(scores, small);

    // Convert scores to weights, part by part.
    values factors;
    std::vector<std::vector<fragment>> weights(static_cast<std::size_t>(key_groups()),
                                               std::vector<fragment>(static_cast<std::size_t>(parts_of(type))));
    const std::int64_t run = lanes.run();
    for (std::int64_t part = 0; part < parts(); ++part) {
      const auto at_part = static_cast<std::size_t>(part);
      auto finished = [&](bool masking) {
        values all;
        for (std::int64_t g = 0; g < key_groups(); ++g)
          for (std::int64_t first = 0; first < chunk; first += run) {
            values raw;
            for (std::int64_t i = 0; i < run; ++i) raw.push_back(lanes.element(code, scores, part, g, first + i));
            Value j = code.add(first_key, code.add(code.mul(lane_group, lanes.key_of_lane_group),
                                                   g * lanes.group_keys + lanes.key(0, first)));
            const values done = p.scores(e, at, rows[at_part], row_ends[at_part], j, raw, masking, !p.scales_weights());
            all.insert(all.end(), done.begin(), done.end());
          }
        return all;
      };
      const values s = masked_from ? code.branch(
                                         code.less(first_key, masked_from), [&] { return finished(false); },
                                         [&] { return finished(true); })
                                   : finished(masked);
      Value top = state[at_part];
      for (Value v : s) top = code.make<arith::MaxNumFOp>(top, v);
      for (std::int64_t mask : lanes.row_masks()) top = code.make<arith::MaxNumFOp>(top, group.shuffle_xor(top, mask));
      // If no key has been seen yet, subtract 0, because -inf - (-inf) is NaN.
      Value none = code.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, top, code.number(top.getType(), lowest));
      Value shift = code.select(none, code.number(top.getType(), 0), top);
      const auto weight = weights_from(shift);
      Value factor = weight(state[at_part]);
      Value sum = code.make<arith::MulFOp>(state[static_cast<std::size_t>(parts()) + at_part], factor);
      for (std::int64_t g = 0; g < key_groups(); ++g) {
        values stored;
        for (Value v : std::span(s).subspan(static_cast<std::size_t>(g * chunk), chunk)) {
          Value w = weight(v);
          sum = code.make<arith::AddFOp>(sum, w);
          stored.push_back(w);
        }
        Value numbers = code.from_lanes(stored);
        if (type != element_type::f32) numbers = reinterpret(code, code.to_storage(numbers, type), chunk_type(code));
        const values own = part_chunks(code, numbers);
        for (std::size_t i = 0; i < own.size(); ++i) add_weights(weights[static_cast<std::size_t>(g)][i], own[i]);
      }
      state[at_part] = top;
      state[static_cast<std::size_t>(parts()) + at_part] = sum;
      factors.push_back(factor);
    }

    values result(state.begin() + 2 * parts(), state.end());
    lanes.scale(code, result, factors);
    if (split_blocks) {
      finish_copies();
      blocks.copy_keys(split_block(code.add(first_key, key_block)));
    }
    add_values(weights, result);
    std::copy(result.begin(), result.end(), state.begin() + 2 * parts());
    return state;
  }

  // The weight of a score: 2^(score - shift). Scores that are not scaled yet, and their maximum, are scaled here: then
  // the scaled difference is one instruction.
  std::function<Value(Value)> weights_from(Value shift) {
    if (!p.scales_weights())
      return [this, shift](Value score) { return power_of_two(code, code.make<arith::SubFOp>(score, shift)); };
    Value factor = code.number(shift.getType(), p.score_factor()),
          start = code.make<arith::MulFOp>(shift, code.number(shift.getType(), -p.score_factor()));
    return [this, factor, start](Value score) { return power_of_two(code, code.fma(score, factor, start)); };
  }
  // The maximum as the stage that joins parts of the keys takes it.
  Value scaled_maximum(Value top) {
    if (!p.scales_weights()) return top;
    return code.make<arith::MulFOp>(top, code.number(top.getType(), p.score_factor()));
  }

  void add_weights(fragment& f, Value own) {
    if (!lanes.whole_row) {
      f.chunks.push_back(own);
      return;
    }
    // Both lane groups need both chunks.
    values words;
    for (std::int64_t i = 0; i < 4; ++i) words.push_back(group.shuffle_xor(code.lane(own, i), lanes.row_masks()[0]));
    Value other = code.from_lanes(words), first = code.equal(lane_group, code.constant(0));
    f.chunks.push_back(code.select(first, own, other));
    f.chunks.push_back(code.select(first, other, own));
  }

  void write(const values& state) {
    std::span<const Value> sums = std::span(state).subspan(static_cast<std::size_t>(2 * parts()));
    for (std::int64_t part = 0; part < parts(); ++part) {
      Value row = rows[static_cast<std::size_t>(part)], valid_row = valid_rows[static_cast<std::size_t>(part)];
      Value sum = state[static_cast<std::size_t>(parts() + part)];
      for (std::int64_t mask : lanes.row_masks()) sum = code.make<arith::AddFOp>(sum, group.shuffle_xor(sum, mask));
      const split_keys::place of_part{own_place.batch, own_place.key_head, key_part, row};
      if (split)
        when(valid_row,
             [&] { split->store_state(of_part, scaled_maximum(state[static_cast<std::size_t>(part)]), sum); });
      Value inverse = split ? Value() : code.make<arith::DivFOp>(code.number(sum.getType(), 1), sum).getResult();
      for (std::int64_t g = 0; g < result_groups(); ++g) {
        values elements;
        for (std::int64_t i = 0; i < chunk; ++i) elements.push_back(lanes.element(code, sums, part, g, i));
        Value depth = code.add(code.mul(lane_group, chunk), g * lanes.group_keys), valid = valid_row;
        if ((g + 1) * lanes.group_keys > p.n.value_depth)
          valid = both(code, valid, code.less(depth, code.constant(p.n.value_depth)));
        when(valid, [&] {
          if (split) return split->store_result(of_part, depth, elements);
          for (Value& element : elements) element = code.make<arith::MulFOp>(element, inverse);
          evaluator ev(e);
          Value rounded = code.to_compute(code.to_storage(code.from_lanes(elements), type), type);
          ev.bind(e.anchor_result(), rounded);
          ev.store_outputs(p.of_output(code, at, row, depth, chunk, chunk), chunk);
        });
      }
    }
  }

  // A null condition means always.
  void when(Value condition, const std::function<void()>& body) { condition ? code.when(condition, body) : body(); }

  kernel_emitter& e;
  code_builder& code;
  const attention_problem& p;
  const matrix_instruction& unit;
  element_type type;
  const lane_layout& lanes;
  matrix_product product;
  std::int64_t key_block;
  bool stored_queries, whole_queries;
  std::int64_t together;
  // Keys and values in parts, where another launch has split them.
  std::optional<buffer> split_blocks;
  dim tiles;
  std::optional<split_keys> split;
  attention_group own_place;
  workgroup& group;
  key_value_blocks blocks;
  Value key_part, lane_group;
  // If it is set, blocks before this key need no mask.
  Value masked_from;
  attention_problem::place at;
  // One entry for each part.
  values rows, valid_rows, row_ends;
  // For each group of depths, one fragment for each part.
  std::vector<std::vector<fragment>> queries;
  Value query_memory;
};

}  // namespace

bool emit_matrix_attention(kernel_emitter& e, const attention_problem& problem, const dim& used) {
  const auto shape = choose_matrix_shape(e, problem, e.configuration);
  if (!shape) return false;
  const matrix_instruction& unit = *attention_instruction(e, factor_of(e, problem.query.type().type));
  matrix_attention(e, problem, unit, lane_layout(unit, e.target.family, e.target.gpu.wave), *shape, used).emit();
  return true;
}

}  // namespace kiln::gpu
