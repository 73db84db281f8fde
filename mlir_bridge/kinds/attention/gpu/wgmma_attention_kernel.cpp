// The kernel of wgmma_attention: its producer and consumer warpgroups, and the barriers between them.
#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/kinds/attention/gpu/wgmma_rows.hpp"

namespace kiln::gpu {

namespace {

using operand = wgmma_attention_operands::operand;

// Boxes of 64 elements of depth by `box_positions` positions. Coordinates are depth, position, head, batch.
tensor_map make_map(const operand& from, std::int64_t depth, const dim& batch, std::int64_t box_positions) {
  const std::int64_t row = depth * 2, all = row * from.positions * from.heads;
  const bool heads_first = from.layout == head_layout::heads_first;
  tensor_map map;
  map.type = from.memory.type;
  map.dims = {depth, from.positions, from.heads, batch.is_static() ? batch.value() : 0};
  if (!batch.is_static()) map.open_outer = batch;
  map.strides = {heads_first ? row : row * from.heads, heads_first ? row * from.positions : row, all};
  map.box = {64, box_positions, 1, 1};
  map.swizzle_bytes = 128;
  map.l2_promotion_bytes = 256;
  return map;
}

workgroup open_workgroups(kernel_emitter& e, const attention_problem& p, const wgmma_attention_tile& tile,
                          std::int64_t tiles) {
  if (p.is_open() || tile.short_tiles) return workgroup(e, "attention", p.batch * (p.n.heads * tiles), tile.threads());
  return workgroup(e, "attention",
                   p.ends_early() ? std::array{p.n.heads, tiles * tile.key_parts, p.n.batch}
                                  : std::array{tiles * tile.key_parts, p.n.heads, p.n.batch},
                   tile.threads());
}

class attention_writer {
 public:
  attention_writer(kernel_emitter& e, const attention_problem& problem, const wgmma_attention_operands& operands,
                   const wgmma_attention_tile& tile)
      : e_(e),
        code_(e.code),
        p_(problem),
        o_(operands),
        t_(tile),
        hopper_(e.code, tile.bounded),
        tiles_(tile.tiles(problem.n.queries)),
        split_(tile.key_parts > 1 ? std::make_optional<split_keys>(e, problem, tile.key_parts, tile.rows())
                                  : std::nullopt),
        // With a causal mask, the query tiles of all heads with the most work start first. Otherwise neighbouring
        // workgroups share keys.
        group_(open_workgroups(e, problem, tile, tiles_)),
        rows_(e, hopper_, group_, problem, tile) {}

  void write() {
    e_.function()->setAttr("passthrough",
                           code_.builder.getArrayAttr({code_.builder.getArrayAttr(
                               {code_.builder.getStringAttr("nvvm.minctasm"), code_.builder.getStringAttr("1")})}));
    query_map_ = e_.tensor_map_address(o_.query.memory,
                                       make_map(o_.query, t_.depth, p_.batch, wgmma_attention_tile::group_rows));
    key_map_ = e_.tensor_map_address(o_.key.memory, make_map(o_.key, t_.depth, p_.batch, t_.keys));
    value_map_ = e_.tensor_map_address(o_.value_.memory, make_map(o_.value_, t_.depth, p_.batch, t_.keys));
    queries_ = hopper_.shared_address(group_.lds(t_.consumers * t_.query_bytes(), 1024));
    keys_ = hopper_.shared_address(group_.lds(t_.stages * t_.block_bytes(), 1024));
    values_ = hopper_.shared_address(group_.lds(t_.stages * t_.block_bytes(), 1024));
    barriers_ = hopper_.shared_address(group_.lds(8 * (1 + 4 * t_.stages), 16));

    thread_ = hopper_.narrow(group_.thread());
    Value number;
    if (t_.short_tiles) {
      number = long_tiles_first();
    } else if (p_.is_open()) {
      const values digits = e_.delinearize(group_.block(), std::vector<dim>{p_.batch, p_.n.heads, tiles_});
      batch_ = hopper_.narrow(digits[0]), head_ = hopper_.narrow(digits[1]), number = hopper_.narrow(digits[2]);
    } else {
      head_ = hopper_.narrow(group_.block(p_.ends_early() ? 0 : 1));
      batch_ = hopper_.narrow(group_.block(2));
      number = hopper_.narrow(group_.block(p_.ends_early() ? 1 : 0));
    }
    if (split_) part_ = code_.rem(number, t_.key_parts), number = code_.div(number, t_.key_parts);
    tile_ = p_.ends_early() ? code_.sub(hopper_.number(tiles_ - 1), number) : number;
    first_row_ = code_.mul(tile_, t_.rows());
    if (t_.short_tiles) shorten();
    Value joined = split_ ? group_.lds(16, 16) : Value();
    if (p_.limit) {
      limits_ = group_.lds(t_.limit_bytes(), 16);
      code_.when(code_.less(thread_, hopper_.number(t_.rows())), [&] {
        code_.make<mlir::LLVM::StoreOp>(limit_of(code_.add(first_row_, thread_)),
                                        byte_address(code_, limits_, code_.mul(thread_, 4)), 4u);
      });
    }

    code_.when(code_.equal(thread_, hopper_.number(0)), [&] {
      hopper_.initialize_barrier(barriers_, 1);
      for (std::int64_t s = 0; s < t_.stages; ++s) {
        for (ring r : {ring::keys, ring::values}) {
          hopper_.initialize_barrier(full(r, hopper_.number(s)), 1);
          hopper_.initialize_barrier(empty(r, hopper_.number(s)), consumers());
        }
      }
      hopper_.publish_barriers();
    });
    group_.barrier();
    count_blocks();
    first_block_ = hopper_.number(0);
    if (split_) take_part();
    Value warpgroup = hopper_.uniform(code_.div(thread_, wgmma_attention_tile::group_threads));
    if (t_.producer) {
      code_.branch(
          code_.equal(warpgroup, hopper_.number(t_.consumers)),
          [&] {
            produce();
            return values();
          },
          [&] {
            hopper_.set_register_limit(t_.consumer_registers(), true);
            if (t_.short_tiles) code_.when(code_.less(warpgroup, consumers()), [&] { consume(warpgroup); });
            else consume(warpgroup);
            return values();
          });
    } else {
      begin_copying();
      consume(warpgroup);
    }
    if (split_) {
      const Value share = code_.rem(head_, p_.share), key_head = code_.to_index(code_.div(head_, p_.share));
      Value first = code_.add(code_.mul(share, p_.n.queries), first_row_);
      Value tile = p_.share == 1 ? tile_ : code_.add(code_.mul(share, tiles_), tile_);
      split_->join(group_, {code_.to_index(batch_), key_head, code_.to_index(part_), code_.to_index(first)},
                   code_.to_index(tile), joined);
    }
    group_.close();
    if (split_) split_->join_apart();
  }

 private:
  enum class ring : std::int64_t { keys, values };
  // Barriers in order: queries, full keys, full values, empty keys, empty values.
  Value full(ring r, Value stage) {
    return code_.add(code_.add(barriers_, code_.mul(stage, 8)), 8 + static_cast<std::int64_t>(r) * t_.stages * 8);
  }
  Value empty(ring r, Value stage) { return code_.add(full(r, stage), 2 * t_.stages * 8); }
  Value memory(ring r, Value stage) {
    return code_.add(r == ring::keys ? keys_ : values_, code_.mul(stage, t_.block_bytes()));
  }

  // --- short tiles

  Value consumers() { return active_ ? active_ : hopper_.number(t_.consumers); }
  // Of all heads, the tiles of all consumers start first. Sets the head and the batch, and returns the tile's number.
  Value long_tiles_first() {
    const std::int64_t longs = t_.long_tiles(p_.n.queries), all = longs * p_.n.heads * p_.n.batch;
    const Value number = hopper_.narrow(group_.block()), is_long = code_.less(number, hopper_.number(all)),
                rest = code_.sub(number, all);
    const Value row = code_.select(is_long, code_.div(number, longs), code_.div(rest, t_.short_tiles)),
                tile =
                    code_.select(is_long, code_.rem(number, longs), code_.add(code_.rem(rest, t_.short_tiles), longs));
    head_ = code_.rem(row, p_.n.heads), batch_ = code_.div(row, p_.n.heads);
    return tile;
  }
  void shorten() {
    const Value beyond = code_.sub(tile_, t_.long_tiles(p_.n.queries));
    first_row_ = code_.sub(first_row_, code_.mul(code_.max(beyond, 0), t_.rows() - t_.short_rows()));
    active_ = code_.select(code_.less(beyond, hopper_.number(0)), hopper_.number(t_.consumers),
                           hopper_.number(t_.short_consumers));
  }

  // Stage in the ring of the i-th block, and the parity of its phase.
  Value stage_of(Value i) { return code_.rem(i, t_.stages); }
  Value parity_of(Value i) { return code_.rem(code_.div(i, t_.stages), 2); }

  // The same as end_of(), from the tensor of limits.
  Value limit_of(Value row) {
    const Value query = code_.to_index(code_.min(row, p_.n.queries - 1)), head = code_.to_index(head_);
    return hopper_.narrow(code_.max(p_.end_of_query(code_, place(), head, query), 0));
  }
  // Returns the number of keys up to the last one that a row sees, at least 0. Limits lie in shared memory and are read
  // each time they are needed (volatile), because kept ones would take registers in blocks without a mask.
  Value end_of(Value row) {
    if (p_.limit)
      return code_.make<mlir::LLVM::LoadOp>(code_.builder.getI32Type(),
                                            byte_address(code_, limits_, code_.mul(code_.sub(row, first_row_), 4)), 4u,
                                            /*isVolatile=*/true);
    if (!p_.op.causal) return hopper_.number(p_.n.keys);
    return code_.max(code_.min(code_.add(row, p_.n.keys - p_.n.queries + 1), p_.n.keys), 0);
  }

  // Blocks are processed from the last one that some row sees down to the first, so blocks that need the mask come
  // first.
  void count_blocks() {
    if (p_.limit) {
      std::array<Value, 2> ends;
      for (std::int64_t begin = 0; begin < t_.rows(); begin += 32) {
        const Value end = end_of(code_.add(first_row_, code_.add(hopper_.narrow(group_.lane()), begin)));
        ends[0] = ends[0] ? code_.min(ends[0], end) : end;
        ends[1] = ends[1] ? code_.max(ends[1], end) : end;
      }
      ends[0] = group_.reduce_wave(ends[0], [&](Value a, Value b) { return code_.min(a, b); });
      ends[1] = group_.reduce_wave(ends[1], [&](Value a, Value b) { return code_.max(a, b); });
      blocks_ = code_.max(code_.div(code_.add(hopper_.uniform(ends[1]), t_.keys - 1), t_.keys), 1);
      whole_ = code_.div(hopper_.uniform(ends[0]), t_.keys);
      return;
    }
    Value last_row = code_.min(code_.add(first_row_, t_.rows() - 1), p_.n.queries - 1);
    blocks_ = code_.max(code_.div(code_.add(end_of(last_row), t_.keys - 1), t_.keys), 1);
    whole_ = code_.div(end_of(first_row_), t_.keys);
  }
  // Of the blocks of all keys, those of this part: at least one, which may be one that no row sees.
  void take_part() {
    Value of_part = code_.div(code_.add(blocks_, t_.key_parts - 1), t_.key_parts);
    first_block_ = code_.mul(part_, of_part);
    blocks_ = code_.max(code_.min(of_part, code_.sub(blocks_, first_block_)), 1);
    whole_ = code_.min(code_.max(code_.sub(whole_, first_block_), 0), blocks_);
  }
  // The key that block i begins with: later blocks have earlier keys.
  Value first_key_of(Value i) {
    return code_.mul(code_.add(first_block_, code_.sub(code_.sub(blocks_, 1), i)), t_.keys);
  }
  bool masks() const { return p_.ends_early() || p_.n.keys % t_.keys != 0; }
  // Returns true if blocks after the first processed one may need the mask.
  bool masks_many() const {
    if (p_.limit) return true;
    return p_.op.causal && ((p_.n.keys - p_.n.queries) % t_.keys != 0 || t_.keys % t_.rows() != 0);
  }

  // --- the producer: the warpgroup that copies

  void copy(Value to, Value map, Value position, Value head, Value barrier, std::int64_t positions) {
    for (std::int64_t column = 0; column < t_.columns(); ++column)
      hopper_.copy_box(code_.add(to, column * positions * wgmma_attention_tile::column_bytes), map,
                       values{hopper_.number(column * 64), position, head, batch_}, barrier, std::nullopt, {});
  }

  void copy_queries() {
    for (Value map : {query_map_, key_map_, value_map_}) hopper_.prefetch_map(map);
    hopper_.arrive_expecting(barriers_, t_.consumers * t_.query_bytes());
    for (std::int64_t c = 0; c < t_.consumers; ++c)
      copy(code_.add(queries_, c * t_.query_bytes()), query_map_,
           code_.add(first_row_, c * wgmma_attention_tile::group_rows), code_.add(head_, o_.query.first_head),
           barriers_, wgmma_attention_tile::group_rows);
  }

  // Copies block i when all consumers are done with the block that has its place.
  void copy_block(ring r, Value i) {
    Value stage = stage_of(i), first_key = first_key_of(i);
    // A new barrier is in phase 0. Waiting for the phase before it returns immediately.
    hopper_.wait(empty(r, stage), code_.sub(hopper_.number(1), parity_of(i)));
    hopper_.arrive_expecting(full(r, stage), t_.block_bytes());
    const bool keys = r == ring::keys;
    copy(memory(r, stage), keys ? key_map_ : value_map_, first_key,
         code_.add(code_.div(head_, p_.share), keys ? o_.key.first_head : o_.value_.first_head), full(r, stage),
         t_.keys);
  }

  void produce() {
    hopper_.set_register_limit(t_.producer_registers(), false);
    code_.when(code_.equal(thread_, hopper_.number(t_.consumers * wgmma_attention_tile::group_threads)), [&] {
      copy_queries();
      each_block(hopper_.number(0), blocks_, {}, [&](Value i, std::span<const Value>) {
        for (ring r : {ring::keys, ring::values}) copy_block(r, i);
        return values();
      });
    });
  }

  // Without a producer: the thread that copies is the first one of the last consumer, which takes its turn last, so the
  // others are done with a block when it is.
  void when_copying(Value block, const std::function<void()>& then) {
    Value first = hopper_.number((t_.consumers - 1) * wgmma_attention_tile::group_threads);
    code_.when(code_.make<mlir::arith::AndIOp>(code_.equal(thread_, first), code_.less(block, blocks_)), then);
  }
  void begin_copying() {
    when_copying(hopper_.number(0), [&] {
      copy_queries();
      each_block(hopper_.number(0), code_.min(blocks_, t_.stages), {}, [&](Value i, std::span<const Value>) {
        for (ring r : {ring::keys, ring::values}) copy_block(r, i);
        return values();
      });
    });
  }
  // Copies the block that takes the place of block i.
  void replace(ring r, Value i) {
    if (t_.producer) return;
    Value next = code_.add(i, t_.stages);
    when_copying(next, [&] { copy_block(r, next); });
  }

  values each_block(Value from, Value to, values carried, const code_builder::loop_body& body) {
    return code_.loop(code_.to_index(from), code_.to_index(to), 1, std::move(carried),
                      [&](Value i, std::span<const Value> now) { return body(hopper_.narrow(i), now); });
  }

  // --- the consumers: the warpgroups that multiply

  void release(ring r, Value i) {
    code_.when(code_.equal(in_group_, hopper_.number(0)), [&] { hopper_.arrive(empty(r, stage_of(i))); });
  }
  void await(ring r, Value i) { hopper_.wait(full(r, stage_of(i)), parity_of(i)); }

  // Returns how many columns of block i, counted from this thread's first one, each of its rows sees.
  std::array<Value, 2> limits(Value i) {
    Value first = code_.add(first_key_of(i), code_.mul(code_.rem(in_group_, 4), 2));
    const auto ends = p_.limit ? ends_of_rows() : ends_;
    return {code_.sub(ends[0], first), code_.sub(ends[1], first)};
  }

  // How many keys the two rows of this thread see.
  std::array<Value, 2> ends_of_rows() { return {end_of(row_), end_of(code_.add(row_, 8))}; }

  // Consumers take turns with barriers 1, 2, ...: a consumer proceeds when all threads of the one before it have
  // arrived.
  void turn(const std::string& what, Value group) {
    if (t_.turns)
      hopper_.assembly("bar." + what + " $0, " + std::to_string(2 * wgmma_attention_tile::group_threads) + ";",
                       "r,~{memory}", {code_.add(group, 1)});
  }
  void wait_for_turn() { turn("sync", warpgroup_); }
  void pass_turn(Value to) { turn("arrive", to); }

  struct progress {
    softmax_state softmax;
    values weights, result;
  };
  static values flat(const progress& p) {
    values all{p.softmax.top[0], p.softmax.top[1], p.softmax.sum[0], p.softmax.sum[1]};
    all.insert(all.end(), p.weights.begin(), p.weights.end());
    all.insert(all.end(), p.result.begin(), p.result.end());
    return all;
  }
  progress unflat(std::span<const Value> all) const {
    const auto weights = static_cast<std::size_t>(t_.keys / 4);
    return {{{all[0], all[1]}, {all[2], all[3]}},
            values(all.begin() + 4, all.begin() + 4 + static_cast<std::ptrdiff_t>(weights)),
            values(all.begin() + 4 + static_cast<std::ptrdiff_t>(weights), all.end())};
  }

  // Computes the scores of block i while the weights of the block before are multiplied by their values.
  progress next(progress now, Value i, bool masked) {
    Value before = code_.sub(i, 1);
    await(ring::keys, i);
    wait_for_turn();
    values scores = rows_.begin_scores(own_queries_, memory(ring::keys, stage_of(i)));
    await(ring::values, before);
    values result = rows_.begin_result(now.weights, memory(ring::values, stage_of(before)), now.result);
    pass_turn(next_group_);
    scores = rows_.finish_scores(scores);
    const auto change = rows_.soften(scores, now.softmax, masked ? limits(i) : std::array<Value, 2>{}, false);
    rows_.arrive_after(now.softmax, empty(ring::keys, stage_of(i)), in_group_);
    replace(ring::keys, i);
    now.result = hopper_.finish(result);
    release(ring::values, before);
    replace(ring::values, before);
    rows_.scale(now.result, change);
    now.weights = rows_.pack(scores);
    return now;
  }

  void consume(Value warpgroup) {
    in_group_ = code_.rem(thread_, wgmma_attention_tile::group_threads);
    warpgroup_ = warpgroup;
    const Value is_last = code_.equal(warpgroup, code_.sub(consumers(), 1));
    next_group_ = code_.select(is_last, hopper_.number(0), code_.add(warpgroup, 1));
    own_queries_ = code_.add(queries_, code_.mul(warpgroup, t_.query_bytes()));
    Value in_warp = code_.div(code_.rem(in_group_, 32), 4), warp = code_.div(in_group_, 32);
    row_ = code_.add(first_row_, code_.add(code_.mul(warpgroup, wgmma_attention_tile::group_rows),
                                           code_.add(code_.mul(warp, 16), in_warp)));

    if (!p_.limit) ends_ = ends_of_rows();

    progress now{rows_.initial_state(), {}, rows_.zeros()};
    Value zero = hopper_.number(0);
    hopper_.wait(barriers_, zero);
    await(ring::keys, zero);
    values scores = hopper_.finish(rows_.begin_scores(own_queries_, memory(ring::keys, zero)));
    release(ring::keys, zero);
    replace(ring::keys, zero);
    rows_.soften(scores, now.softmax, masks() ? limits(zero) : std::array<Value, 2>{}, true);
    now.weights = rows_.pack(scores);

    // Let the first consumer take its first turn.
    code_.when(is_last, [&] { pass_turn(next_group_); });
    Value from = hopper_.number(1);
    if (masks_many()) {
      Value to = code_.max(code_.sub(blocks_, whole_), 1);
      now = unflat(each_block(from, to, flat(now), [&](Value i, std::span<const Value> carried) {
        return flat(next(unflat(carried), i, true));
      }));
      from = to;
    }
    now = unflat(each_block(from, blocks_, flat(now), [&](Value i, std::span<const Value> carried) {
      return flat(next(unflat(carried), i, false));
    }));

    Value last = code_.sub(blocks_, 1);
    await(ring::values, last);
    now.result = hopper_.finish(rows_.begin_result(now.weights, memory(ring::values, stage_of(last)), now.result));
    Value of_group = code_.add(code_.mul(code_.rem(head_, p_.share), p_.n.queries), row_);
    if (split_) {
      rows_.write_part(
          *split_, {code_.to_index(batch_), code_.to_index(code_.div(head_, p_.share)), code_.to_index(part_), nullptr},
          row_, of_group, now.result, now.softmax);
    } else {
      rows_.write(place(), row_, of_group, now.result, now.softmax);
    }
  }

  attention_problem::place place() {
    return p_.at(code_, code_.to_index(batch_), code_.to_index(code_.div(head_, p_.share)));
  }

  kernel_emitter& e_;
  code_builder& code_;
  const attention_problem& p_;
  const wgmma_attention_operands& o_;
  const wgmma_attention_tile& t_;
  hopper_code hopper_;
  std::int64_t tiles_;
  std::optional<split_keys> split_;
  workgroup group_;
  wgmma_rows rows_;
  Value query_map_, key_map_, value_map_, queries_, keys_, values_, barriers_;
  Value thread_, head_, batch_, part_, tile_, first_row_, first_block_, blocks_, whole_;
  Value active_;  // the number of consumers that have rows, if it is not the same for all tiles
  Value warpgroup_, next_group_, in_group_, own_queries_, row_;
  Value limits_;               // end_of() of the tile's rows in shared memory, if they are limited
  std::array<Value, 2> ends_;  // ends_of_rows(), if they are not
};

}  // namespace

void write_wgmma_attention(kernel_emitter& e, const attention_problem& problem,
                           const wgmma_attention_operands& operands, const wgmma_attention_tile& tile) {
  attention_writer(e, problem, operands, tile).write();
}

}  // namespace kiln::gpu
