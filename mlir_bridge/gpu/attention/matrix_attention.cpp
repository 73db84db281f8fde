// Attention with matrix instructions: scores, weights and results stay in registers, keys and values pass through shared memory.
#include <algorithm>
#include <limits>

#include "mlir_bridge/gpu/attention/attention.hpp"
#include "mlir_bridge/gpu/attention/lane_layout.hpp"
#include "mlir_bridge/gpu/contraction/chunk.hpp"

namespace kiln::gpu {

namespace {

namespace arith = mlir::arith;

// Keys that pass through shared memory at a time: fewer where every lane holds the weights of all lane groups.
std::int64_t keys_at_a_time(const lane_layout& lanes) { return lanes.whole_row ? 32 : 64; }
constexpr std::int64_t chunk = lane_layout::chunk;
constexpr double lowest = -std::numeric_limits<double>::infinity();

std::int64_t round_up(std::int64_t n, std::int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }
// Chunks of a row in shared memory, so that the swizzle stays within it.
std::int64_t row_chunks(std::int64_t chunks) {
  std::int64_t n = 1;
  while (n < chunks && n < 8) n *= 2;
  return chunks <= 8 ? n : round_up(chunks, 8);
}

const matrix_instruction* find_instruction(const kernel_emitter& e, element_type type) {
  for (const matrix_instruction* unit : find_matrix_instructions(e.target.gpu.matrix, type, false))
    if (unit->m == 16) return unit;
  return nullptr;
}

class matrix_attention {
 public:
  matrix_attention(kernel_emitter& emitter, const attention_problem& problem, const matrix_instruction& instruction, std::int64_t waves)
      : e(emitter), code(e.code), p(problem), unit(instruction), type(p.query.type().type), lanes(unit, e.target.family, e.target.gpu.wave), product(e, unit, {type, element_type::f32}), key_block(keys_at_a_time(lanes)),
        depth_chunks(round_up(p.n.depth, lanes.group_keys) / chunk), value_depth(round_up(p.n.value_depth, lanes.group_keys)), key_pitch(row_chunks(depth_chunks)),
        tiles((p.rows + waves * lanes.row_tile - 1) / (waves * lanes.row_tile)), group(e, "attention", {tiles, p.n.key_heads, p.n.batch}, waves * e.target.gpu.wave) {}

  static std::int64_t shared_bytes(const lane_layout& lanes, const attention_problem& p) {
    const std::int64_t key_block = keys_at_a_time(lanes);
    return key_block * row_chunks(round_up(p.n.depth, lanes.group_keys) / chunk) * chunk_bytes + round_up(p.n.value_depth, lanes.group_keys) * (key_block / chunk) * chunk_bytes;
  }

  void emit() {
    keys = group.lds(key_block * key_pitch * chunk_bytes, 128);
    values_t = group.lds(value_depth * (key_block / chunk) * chunk_bytes, 128);
    at = p.at(code, group.block(2), group.block(1));
    lane_group = lanes.lane_group(code, group.lane());
    const std::int64_t tile_rows = group.waves() * lanes.row_tile;
    // With a causal mask the last rows have most to do: they begin first.
    Value tile = p.op.causal ? code.sub(code.constant(tiles - 1), group.block(0)) : group.block(0);
    Value first_row = code.mul(tile, tile_rows);
    Value own = code.add(code.add(first_row, code.mul(group.wave(), lanes.row_tile)), lanes.row_of_lane(code, group.lane()));
    for (std::int64_t part = 0; part < lanes.row_parts; ++part) {
      Value row = code.add(own, part * lanes.part_rows);
      valid_rows.push_back(p.rows % tile_rows == 0 ? Value() : code.less(row, code.constant(p.rows)));
      rows.push_back(code.min(row, p.rows - 1));
      row_ends.push_back(p.end_of_row(code, rows.back()));
    }
    read_queries();
    // Keys up to `whole` are seen by all rows of the workgroup and need no mask; keys from `end` on by none.
    Value whole = code.constant(p.n.keys / key_block * key_block), end = code.constant(p.n.keys);
    if (p.op.causal && (p.share == 1 || p.n.queries % tile_rows == 0)) {
      Value last = code.min(code.add(first_row, tile_rows - 1), p.rows - 1);
      end = code.max(p.end_of_row(code, last), 0);
      whole = code.mul(code.div(code.min(code.max(p.end_of_row(code, code.min(first_row, p.rows - 1)), 0), end), key_block), key_block);
    } else if (p.op.causal) {
      whole = code.constant(0);
    }
    values state = initial_state();
    if (prefetches()) {
      fetch(code.constant(0));
      store();
      group.barrier();
    }
    state = walk(code.constant(0), whole, std::move(state), false);
    state = walk(whole, end, std::move(state), true);
    write(state);
    group.close();
  }

 private:
  std::int64_t parts() const { return lanes.row_parts; }
  std::int64_t depth_groups() const { return depth_chunks * chunk / lanes.group_keys; }
  std::int64_t key_groups() const { return key_block / lanes.group_keys; }
  std::int64_t result_groups() const { return value_depth / lanes.group_keys; }

  // State: largest score and sum of weights of each part, then the result's sums.
  values initial_state() {
    values state;
    mlir::Type f32 = code.builder.getF32Type();
    for (std::int64_t i = 0; i < parts(); ++i) state.push_back(code.number(f32, lowest));
    for (std::int64_t i = 0; i < parts(); ++i) state.push_back(code.number(f32, 0));
    values zeros = product.zeros(result_groups() * lanes.tiles_of_group);
    state.insert(state.end(), zeros.begin(), zeros.end());
    return state;
  }

  // Elements of a tensor as a chunk; zero where `inside` (may be null) does not hold.
  Value chunk_of(const value& tensor, const position& where, Value inside) {
    evaluator ev(e);
    Value stored = reinterpret(code, code.to_storage(ev.at(tensor, where, chunk), type), chunk_type(code));
    return inside ? code.select(inside, stored, code.integer(chunk_type(code), 0)) : stored;
  }

  void read_queries() {
    const factor_map& map = lanes.rows_are_a ? unit.a : unit.b;
    const std::int64_t of_group = lanes.group_keys / chunk;  // chunks
    for (std::int64_t g = 0; g < depth_groups(); ++g) {
      fragment f;
      for (std::int64_t part = 0; part < parts(); ++part)
        for (std::int64_t c = 0; c < (map.whole_row ? of_group : 1); ++c) {
          Value at_chunk = map.whole_row ? code.constant(g * of_group + c) : code.add(lane_group, g * of_group);
          f.chunks.push_back(query_chunk(rows[static_cast<std::size_t>(part)], at_chunk));
        }
      queries.push_back(std::move(f));
    }
  }

  Value query_chunk(Value row, Value number) {
    Value depth = code.mul(number, chunk), inside;
    if (p.n.depth % lanes.group_keys) inside = code.less(depth, code.constant(p.n.depth)), depth = code.min(depth, p.n.depth - chunk);
    return chunk_of(p.query, p.of_query(code, at, row, depth, chunk, chunk), inside);
  }

  // --- keys and values: global memory → registers → shared memory

  std::int64_t key_pieces() const { return key_block * key_pitch; }
  std::int64_t value_pieces() const { return key_block / chunk * value_depth / chunk; }
  std::int64_t rounds(std::int64_t pieces) const { return (pieces + group.threads() - 1) / group.threads(); }  // of all threads

  struct piece {
    Value number, used;  // used: whether this thread has a piece in this round; null: yes
  };
  piece piece_of_round(std::int64_t round, std::int64_t pieces) {
    Value number = code.add(group.thread(), round * group.threads());
    if ((round + 1) * group.threads() <= pieces) return {number, {}};
    return {code.min(number, pieces - 1), code.less(number, code.constant(pieces))};
  }

  // From first_key on; keys beyond the last one give that one.
  void fetch(Value first_key) {
    fetched_keys.clear();
    fetched_values.clear();
    Value last = code.constant(p.n.keys - 1);
    for (std::int64_t i = 0; i < rounds(key_pieces()); ++i) {
      piece here = piece_of_round(i, key_pieces());
      Value j = code.add(first_key, code.div(here.number, key_pitch)), depth = code.mul(code.rem(here.number, key_pitch), chunk), inside;
      if (key_pitch * chunk != p.n.depth) inside = code.less(depth, code.constant(p.n.depth)), depth = code.min(depth, p.n.depth - chunk);
      fetched_keys.push_back(chunk_of(p.key, p.of_key(at, code.min(j, last), depth, chunk, chunk), inside));
    }
    // A piece is 8 keys (in the order of lane_layout::key) by 8 depths, neighbouring threads taking neighbouring depths.
    for (std::int64_t i = 0; i < rounds(value_pieces()); ++i) {
      piece here = piece_of_round(i, value_pieces());
      Value column = code.div(here.number, value_depth / chunk), depth = code.mul(code.rem(here.number, value_depth / chunk), chunk), inside;
      Value base = code.add(first_key, code.add(code.mul(code.div(column, lanes.lane_groups), lanes.group_keys), code.mul(code.rem(column, lanes.lane_groups), lanes.key_of_lane_group)));
      if (value_depth != p.n.value_depth) inside = code.less(depth, code.constant(p.n.value_depth)), depth = code.min(depth, p.n.value_depth - chunk);
      for (std::int64_t k = 0; k < chunk; ++k) {
        Value j = code.add(base, lanes.key(0, k));
        Value seen = p.n.keys % key_block ? both(code, inside, code.less(j, code.constant(p.n.keys))) : inside;
        fetched_values.push_back(chunk_of(p.value_, p.of_value(at, code.min(j, last), depth, chunk, chunk), seen));
      }
    }
  }

  void store() {
    for (std::int64_t i = 0; i < rounds(key_pieces()); ++i) {
      piece here = piece_of_round(i, key_pieces());
      Value row = code.div(here.number, key_pitch), column = code.rem(here.number, key_pitch);
      Value place = code.add(code.mul(row, key_pitch), bit_xor(code, column, swizzle(code, row, key_pitch)));
      when_used(here, [&] { store_chunk(code, byte_address(code, keys, code.mul(place, chunk_bytes)), fetched_keys[static_cast<std::size_t>(i)]); });
    }
    mlir::Type halves = code.with_lanes(code.storage_type(type), chunk);
    for (std::int64_t i = 0; i < rounds(value_pieces()); ++i) {
      piece here = piece_of_round(i, value_pieces());
      Value column = code.div(here.number, value_depth / chunk), depth_chunk = code.rem(here.number, value_depth / chunk);
      Value base = code.add(code.mul(code.div(depth_chunk, lanes.lane_groups), lanes.group_keys), code.mul(code.rem(depth_chunk, lanes.lane_groups), lanes.key_of_lane_group));
      values of_keys;
      for (std::int64_t k = 0; k < chunk; ++k) of_keys.push_back(reinterpret(code, fetched_values[static_cast<std::size_t>(i * chunk + k)], halves));
      when_used(here, [&] {
        for (std::int64_t d = 0; d < chunk; ++d) {
          values elements;
          for (Value v : of_keys) elements.push_back(code.lane(v, d));
          Value row = code.add(base, lanes.key(0, d));
          Value place = code.add(code.mul(row, key_block / chunk), bit_xor(code, column, swizzle(code, row, key_block / chunk)));
          store_chunk(code, byte_address(code, values_t, code.mul(place, chunk_bytes)), reinterpret(code, code.from_lanes(elements), chunk_type(code)));
        }
      });
    }
  }

  void when_used(const piece& here, const std::function<void()>& body) {
    if (here.used) code.when(here.used, body);
    else body();
  }

  // A fragment of a matrix in shared memory: rows [first, first + one tile), chunks of group g.
  fragment read(Value memory, const factor_map& map, std::int64_t first, std::int64_t pitch, std::int64_t g) {
    Value row = code.rem(code.div(group.lane(), map.row_divisor), map.row_modulus);
    Value swizzled = swizzle(code, row, pitch);
    fragment f;
    for (std::int64_t part = 0; part < map.parts; ++part)
      for (std::int64_t c = 0; c < (map.whole_row ? map.chunks : 1); ++c) {
        Value number = map.whole_row ? code.constant(g * map.chunks + c) : code.add(code.rem(code.div(group.lane(), map.chunk_divisor), map.chunks), g * map.chunks);
        Value place = code.add(code.mul(row, pitch), bit_xor(code, number, swizzled));
        f.chunks.push_back(load_chunk(code, byte_address(code, byte_address(code, memory, code.mul(place, chunk_bytes)), (first + part * map.part_rows) * pitch * chunk_bytes)));
      }
    return f;
  }

  void multiply(const fragment& rows_side, const fragment& other, std::span<Value> sums) {
    for (std::int64_t step = 0; step < product.steps_of_fragment(); ++step) {
      if (lanes.rows_are_a) product.add(rows_side, other, step, sums);
      else product.add(other, rows_side, step, sums);
    }
  }

  // --- the loop

  // Whether loads for the next block are on their way while one is worked on: where registers allow it (32-bit ones of one thread, about).
  bool prefetches() const {
    const factor_map& map = lanes.rows_are_a ? unit.a : unit.b;
    const std::int64_t wave = group.wave_size(), copies = map.whole_row ? lanes.lane_groups : 1;
    const std::int64_t of_queries = depth_groups() * parts() * copies * 4, of_result = lanes.row_tile * value_depth / wave, of_scores = lanes.row_tile * key_block / wave;
    const std::int64_t fetched = rounds(key_pieces()) * 4 + rounds(value_pieces()) * chunk * 4;
    return of_queries + of_result + of_scores + of_scores * copies / 2 + fetched <= e.target.gpu.registers * (map.whole_row ? 50 : 60) / 100;
  }

  // Where loads run ahead, shared memory holds the block at `from`.
  values walk(Value from, Value to, values state, bool masked) {
    const bool ahead = prefetches();
    return code.loop(from, to, key_block, std::move(state), [&](Value first_key, std::span<const Value> carried) {
      fetch(ahead ? code.add(first_key, key_block) : first_key);
      if (!ahead) store(), group.barrier();
      values next = block(first_key, values(carried.begin(), carried.end()), masked);
      group.barrier();
      if (ahead) store(), group.barrier();
      return next;
    });
  }

  values block(Value first_key, values state, bool masked) {
    const factor_map& map = lanes.rows_are_a ? unit.b : unit.a;
    const auto per_tile = static_cast<std::size_t>(product.values_per_tile());
    const std::int64_t tile_count = key_block / lanes.key_tile;
    values scores = product.zeros(tile_count);
    for (std::int64_t g = 0; g < depth_groups(); ++g)
      for (std::int64_t t = 0; t < tile_count; ++t)
        multiply(queries[static_cast<std::size_t>(g)], read(keys, map, t * lanes.key_tile, key_pitch, g), std::span(scores).subspan(static_cast<std::size_t>(t) * per_tile, per_tile));

    // Scores → weights, part by part.
    values factors;
    std::vector<fragment> weights(static_cast<std::size_t>(key_groups()));
    const std::int64_t run = lanes.run();
    for (std::int64_t part = 0; part < parts(); ++part) {
      const auto at_part = static_cast<std::size_t>(part);
      std::vector<values> s(static_cast<std::size_t>(key_groups()));
      Value top = state[at_part];
      for (std::int64_t g = 0; g < key_groups(); ++g)
        for (std::int64_t first = 0; first < chunk; first += run) {
          values raw;
          for (std::int64_t i = 0; i < run; ++i) raw.push_back(lanes.element(code, scores, part, g, first + i));
          Value j = code.add(first_key, code.add(code.mul(lane_group, lanes.key_of_lane_group), g * lanes.group_keys + lanes.key(0, first)));
          values done = score(rows[at_part], row_ends[at_part], j, raw, masked);
          for (Value v : done) {
            s[static_cast<std::size_t>(g)].push_back(v);
            top = code.make<arith::MaxNumFOp>(top, v);
          }
        }
      for (std::int64_t mask : lanes.row_masks()) top = code.make<arith::MaxNumFOp>(top, group.shuffle_xor(top, mask));
      // Where no key has been seen yet, nothing is subtracted: -inf - -inf is no number.
      Value none = code.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, top, code.number(top.getType(), lowest));
      Value shift = code.select(none, code.number(top.getType(), 0), top);
      Value factor = power(code.make<arith::SubFOp>(state[at_part], shift));
      Value sum = code.make<arith::MulFOp>(state[static_cast<std::size_t>(parts()) + at_part], factor);
      for (std::int64_t g = 0; g < key_groups(); ++g) {
        values stored;
        for (Value v : s[static_cast<std::size_t>(g)]) {
          Value w = power(code.make<arith::SubFOp>(v, shift));
          sum = code.make<arith::AddFOp>(sum, w);
          stored.push_back(w);
        }
        Value own = reinterpret(code, code.to_storage(code.from_lanes(stored), type), chunk_type(code));
        add_weights(weights[static_cast<std::size_t>(g)], own);
      }
      state[at_part] = top;
      state[static_cast<std::size_t>(parts()) + at_part] = sum;
      factors.push_back(factor);
    }

    values result(state.begin() + 2 * parts(), state.end());
    lanes.scale(code, result, factors);
    for (std::int64_t g = 0; g < key_groups(); ++g)
      for (std::int64_t t = 0; t < result_groups() * lanes.tiles_of_group; ++t)
        multiply(weights[static_cast<std::size_t>(g)], read(values_t, map, t * lanes.key_tile, key_block / chunk, g), std::span(result).subspan(static_cast<std::size_t>(t) * per_tile, per_tile));
    std::copy(result.begin(), result.end(), state.begin() + 2 * parts());
    return state;
  }

  Value power(Value x) { return code.make<mlir::math::Exp2Op>(x, mlir::arith::FastMathFlagsAttr::get(code.builder.getContext(), arith::FastMathFlags::afn)); }

  // Neighbouring keys from j on: scaled, with the mask, -inf where the row sees no such key.
  values score(Value row, Value row_end, Value j, const values& raw, bool masked) {
    const auto run = static_cast<std::int64_t>(raw.size());
    values result;
    if (masked || !p.mask.producer || p.n.keys % run) {
      for (std::int64_t i = 0; i < run; ++i) {
        Value at_key = code.add(j, i), product_i = raw[static_cast<std::size_t>(i)];
        Value v = p.masked_score(e, at, row, masked ? code.min(at_key, p.n.keys - 1) : at_key, product_i, 1);
        result.push_back(masked ? code.select(code.less(at_key, row_end), v, code.number(v.getType(), lowest)) : v);
      }
      return result;
    }
    Value all = p.masked_score(e, at, row, j, code.from_lanes(raw), run);
    for (std::int64_t i = 0; i < run; ++i) result.push_back(code.lane(all, i));
    return result;
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
      Value sum = state[static_cast<std::size_t>(parts() + part)];
      for (std::int64_t mask : lanes.row_masks()) sum = code.make<arith::AddFOp>(sum, group.shuffle_xor(sum, mask));
      Value inverse = code.make<arith::DivFOp>(code.number(sum.getType(), 1), sum);
      for (std::int64_t g = 0; g < result_groups(); ++g) {
        values elements;
        for (std::int64_t i = 0; i < chunk; ++i) elements.push_back(code.make<arith::MulFOp>(lanes.element(code, sums, part, g, i), inverse));
        Value depth = code.add(code.mul(lane_group, chunk), g * lanes.group_keys), valid = valid_rows[static_cast<std::size_t>(part)];
        if ((g + 1) * lanes.group_keys > p.n.value_depth) valid = both(code, valid, code.less(depth, code.constant(p.n.value_depth)));
        auto store_all = [&] {
          evaluator ev(e);
          Value rounded = code.to_compute(code.to_storage(code.from_lanes(elements), type), type);
          ev.bind(e.anchor_result(), rounded);
          ev.store_outputs(p.of_output(code, at, rows[static_cast<std::size_t>(part)], depth, chunk, chunk), chunk);
        };
        if (valid) code.when(valid, store_all);
        else store_all();
      }
    }
  }

  kernel_emitter& e;
  code_builder& code;
  const attention_problem& p;
  const matrix_instruction& unit;
  element_type type;
  lane_layout lanes;
  matrix_product product;
  std::int64_t key_block, depth_chunks, value_depth, key_pitch, tiles;
  workgroup group;
  Value keys, values_t, lane_group;
  attention_problem::place at;
  values rows, valid_rows, row_ends;      // of each part
  std::vector<fragment> queries;          // of each group of depths
  values fetched_keys, fetched_values;
};

}  // namespace

bool emit_matrix_attention(kernel_emitter& e, const attention_problem& problem) {
  const element_type type = problem.query.type().type;
  if (type != element_type::f16 && type != element_type::bf16) return false;
  if (problem.n.depth % chunk || problem.n.value_depth % chunk || problem.n.keys == 0) return false;
  const matrix_instruction* unit = find_instruction(e, type);
  if (!unit) return false;
  lane_layout lanes(*unit, e.target.family, e.target.gpu.wave);
  if (matrix_attention::shared_bytes(lanes, problem) > e.target.gpu.lds_bytes) return false;
  // The result's sums and the queries of a wave stay in registers.
  if (problem.n.depth > 256 || problem.n.value_depth > 256) return false;
  // Waves without rows of their own help to bring the keys.
  const std::int64_t waves = problem.n.keys > keys_at_a_time(lanes) ? 4 : std::clamp<std::int64_t>((problem.rows + lanes.row_tile - 1) / lanes.row_tile, 1, 4);
  matrix_attention(e, problem, *unit, waves).emit();
  return true;
}

}  // namespace kiln::gpu
