// Attention with matrix instructions. Scores, weights and results stay in registers; keys and values are staged in
// shared memory. f32 numbers are multiplied as sums of bf16 parts, with new sums for each block of keys, because matrix
// units round long sums toward zero.
#include <functional>
#include <limits>
#include <optional>

#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/intrinsics.hpp"
#include "mlir_bridge/kinds/attention/gpu/block_products.hpp"
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
        key_block(shape.keys),
        stored_queries(shape.stored_queries),
        split_blocks(shape.split_first ? std::make_optional(split_keys_and_values(e, p, lanes, key_block))
                                       : std::nullopt),
        tiles(ceil_div(p.all_rows, shape.waves * lanes.row_tile)),
        split(shape.key_parts > 1 ? std::make_optional<split_keys>(e, p, shape.key_parts, shape.waves * lanes.row_tile)
                                  : std::nullopt),
        own_place(e, p, tiles * shape.key_parts, shape.waves * e.target.gpu.wave, used),
        group(own_place.group),
        blocks(e, p, lanes, group, key_block),
        queries(e, p, lanes, query_map(), group, shape),
        products(e, type, lanes, unit, blocks, shape) {}

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
    queries.read(at, rows, lane_group, products.depth_groups());
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
  const factor_map& query_map() const { return lanes.rows_are_a ? unit.a : unit.b; }

  // The state: the maximum score and the sum of weights for each part, then the sums of the result.
  values initial_state() {
    mlir::Type f32 = code.builder.getF32Type();
    values state(static_cast<std::size_t>(parts()), code.number(f32, lowest));
    state.resize(2 * state.size(), code.number(f32, 0));
    values zeros = products.no_result();
    state.insert(state.end(), zeros.begin(), zeros.end());
    return state;
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
    const factor_map& map = query_map();
    const std::int64_t wave = group.wave_size(), copies = map.whole_row ? lanes.lane_groups : 1;
    if (type == element_type::f32 || saves_registers()) return false;
    const std::int64_t of_queries = stored_queries ? 0 : products.depth_groups() * parts() * copies * 4,
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
    const values scores = products.scores(queries);
    products.begin_values();

    // Convert scores to weights, part by part.
    values factors;
    std::vector<std::vector<fragment>> weights(static_cast<std::size_t>(products.key_groups()),
                                               std::vector<fragment>(static_cast<std::size_t>(parts_of(type))));
    const std::int64_t run = lanes.run();
    for (std::int64_t part = 0; part < parts(); ++part) {
      const auto at_part = static_cast<std::size_t>(part);
      auto finished = [&](bool masking) {
        values all;
        for (std::int64_t g = 0; g < products.key_groups(); ++g)
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
      for (std::int64_t g = 0; g < products.key_groups(); ++g) {
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
    products.add_values(weights, result);
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
      for (std::int64_t g = 0; g < products.result_groups(); ++g) {
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
  std::int64_t key_block;
  bool stored_queries;
  // Keys and values in parts, where another launch has split them.
  std::optional<buffer> split_blocks;
  dim tiles;
  std::optional<split_keys> split;
  attention_group own_place;
  workgroup& group;
  key_value_blocks blocks;
  matrix_queries queries;
  block_products products;
  Value key_part, lane_group;
  // If it is set, blocks before this key need no mask.
  Value masked_from;
  attention_problem::place at;
  // One entry for each part.
  values rows, valid_rows, row_ends;
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
