#include "mlir_bridge/gpu/wgmma/wgmma_kernel.hpp"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/split_f32.hpp"
#include "mlir_bridge/gpu/wgmma/divided_epilogue.hpp"
#include "mlir_bridge/gpu/wgmma/divided_weights.hpp"
#include "mlir_bridge/gpu/wgmma/hopper_code.hpp"
#include "mlir_bridge/gpu/wgmma/row_squares.hpp"
#include "mlir_bridge/gpu/wgmma/split_sums.hpp"
#include "mlir_bridge/gpu/wgmma/stage_cursor.hpp"
#include "mlir_bridge/gpu/wgmma/tile_order.hpp"
#include "mlir_bridge/gpu/wgmma/transposed_epilogue.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_epilogue.hpp"
#include "mlir_bridge/gpu/workgroup.hpp"

namespace kiln::gpu {

namespace {

// Bytes of k in a row of shared memory (of rows, if k is not inner).
constexpr std::int64_t row_bytes = 128;
// Rows of a matrix instruction, and size of boxes if k is not inner.
constexpr std::int64_t block_rows = 64;
constexpr std::int64_t block_bytes = block_rows * row_bytes;
constexpr std::int64_t pattern_alignment = 1024;
// Threads of a warpgroup.
constexpr std::int64_t group_threads = 128;
// The register file has 65536 registers: 168 for each of 384 threads. With more sums than this, consumers need
// registers that the producer warpgroup releases.
constexpr std::int64_t most_sums_without_limits = 96;
constexpr std::int64_t producer_registers = 40, consumer_registers = 232;
static_assert((producer_registers + 2 * consumer_registers) * group_threads <= 65536);

class wgmma_writer {
 public:
  wgmma_writer(kernel_emitter& e, const wgmma_problem& problem, const wgmma_tile& tile)
      : e_(e),
        code_(e.code),
        p_(problem),
        t_(tile),
        hopper_(e.code, tile.bounded),
        squares_(e.code, hopper_, problem, tile) {
    shape_ = {tile.n,           tile.row_blocks(), problem.a.memory.type, problem.b.memory.type, problem.a.k_inner,
              problem.b.k_inner};
    if (tile.transposed) {
      shape_.columns = tile.a_rows(), shape_.row_blocks = tile.n / block_rows;
      std::swap(shape_.a, shape_.b), std::swap(shape_.a_k_inner, shape_.b_k_inner);
    }
    if (tile.turned)
      shape_ = {tile.m, 1, problem.b.memory.type, problem.a.memory.type, problem.b.k_inner, problem.a.k_inner};
    if (tile.divided) shape_ = {tile.m, 1, problem.a.memory.type, problem.a.memory.type, true, problem.a.k_inner};
    k_elements_ = row_bytes * 8 / storage_bits(problem.a.memory.type);
    channel_blocks_ = problem.image ? ceil_div(problem.image->channels, k_elements_) : 1;
    blocks_ = problem.image ? problem.image->taps() * channel_blocks_ : ceil_div(problem.k, k_elements_);
    tiles_m_ = ceil_div(problem.m, tile.m * tile.cluster_m);
    columns_ = tile.n / problem.products();
    tiles_n_ = ceil_div(problem.n, columns_ * tile.cluster_n);
    // Each warp releases the stage of which it has read rows itself.
    releasers_ = problem.epsilon || tile.divided ? 4 : 1;
    tiles_ = tiles_m_ * tiles_n_ * problem.batch;
    // Workgroups of a transposed tile exchange their sums once.
    clusters_ = tile.transposed && tile.splits > 1 ? tiles_ : std::min(tiles_, resident_clusters(tile, e.target));
    // Kernels of few rows wait for weights, so these are read before the predecessors have ended.
    early_ = tile.pairs;
    if (!problem.open_m) return;
    const dim& rows = *problem.open_m;
    open_tiles_ = (rows + tile.m - 1) / tile.m * tiles_n_;
    clusters_ = resident_clusters(tile, e.target) * tile.per_unit;
    if (problem.image) return;
    last_row_ = dim::max(rows - tile.m, 0);
    // A tensor map's box must not be much larger than the tensor: what is copied of it is slow to come.
    copied_rows_ = dim::min((rows + 7) / 8 * 8, tile.a_rows());
  }

  void write() {
    workgroup group(
        e_, "wgmma",
        open_tiles_ ? dim::min(*open_tiles_, clusters_) * t_.cluster() * p_.used : dim(clusters_ * t_.cluster()),
        t_.threads());
    set_launch_attributes();
    // Arguments are added in this order: tensor map of A, tensor map of B, then those of the epilogue.
    tensor_map of_a = p_.image
                          ? make_image_map(p_)
                          : make_tensor_map(p_.a, p_.batch, p_.a.k_inner ? t_.a_rows() / t_.cluster_n : k_elements_);
    if (copied_rows_) of_a.dims.back() = 0, of_a.open_outer = p_.open_m, of_a.open_rows = copied_rows_;
    a_map_ = e_.tensor_map_address(p_.a.memory, std::move(of_a));
    const auto map_of_columns = [&](const wgmma_operand& b) {
      const Value map = e_.tensor_map_address(
          b.memory, make_tensor_map(b, p_.batch, b.k_inner ? columns_ / t_.cluster_m : k_elements_));
      if (early_) e_.current().early_arguments.push_back(e_.current().tensor_maps.back().argument);
      return map;
    };
    b_map_ = map_of_columns(p_.b);
    if (p_.second_b) second_map_ = map_of_columns(*p_.second_b);
    stage_memory_ = group.lds(t_.stages * t_.stage_bytes(), pattern_alignment);
    stages_ = hopper_.shared_address(stage_memory_);
    full_ = hopper_.shared_address(group.lds(t_.stages * 16, 16));
    empty_ = code_.add(full_, t_.stages * 8);
    const std::int64_t warp_bytes = t_.transposed || t_.divided || t_.turned ? 0 : epilogue_bytes(e_, p_),
                       end_bytes = t_.transposed             ? exchange_bytes(t_, p_.products())
                                   : t_.divided || t_.turned ? t_.consumers * divided_exchange_bytes(t_)
                                                             : t_.consumers * 4 * warp_bytes;
    epilogue_memory_ = group.lds(std::max<std::int64_t>(16, end_bytes), 16);
    if (p_.epsilon && !t_.transposed) scale_memory_ = group.lds(block_rows * 4, 16);

    thread_ = hopper_.narrow(group.thread());
    Value workgroup_number = hopper_.narrow(group.block());
    rank_ = t_.cluster() > 1 ? code_.rem(workgroup_number, t_.cluster()) : hopper_.number(0);
    first_tile_ = code_.div(workgroup_number, t_.cluster());
    Value sharing = t_.splits > 1 ? hopper_.number(0) : rank_;
    rank_m_ = code_.div(sharing, t_.cluster_n);
    rank_n_ = code_.rem(sharing, t_.cluster_n);
    first_block_ = t_.splits > 1 ? code_.mul(rank_, ceil_div(blocks_, t_.splits)) : hopper_.number(0);
    end_block_ = t_.splits > 1 ? code_.min(code_.add(first_block_, ceil_div(blocks_, t_.splits)), blocks_)
                               : hopper_.number(blocks_);

    code_.when(code_.equal(thread_, hopper_.number(0)), [&] {
      for (std::int64_t s = 0; s < t_.stages; ++s) {
        hopper_.initialize_barrier(code_.add(full_, 8 * s), 1);
        hopper_.initialize_barrier(code_.add(empty_, 8 * s),
                                   (t_.in_turn() ? 1 : t_.consumers) * releasers_ * (t_.cluster_m + t_.cluster_n - 1));
      }
      hopper_.publish_barriers();
    });
    group.barrier();
    // The workgroups of a transposed tile meet again before they exchange sums.
    if (t_.transposed && t_.splits > 1) hopper_.arrive_at_cluster();
    else if (t_.cluster() > 1) hopper_.synchronize_cluster();

    Value warpgroup = hopper_.uniform(code_.div(thread_, group_threads));
    code_.branch(
        code_.equal(warpgroup, hopper_.number(t_.consumers)),
        [&] {
          produce(group);
          return values();
        },
        [&] {
          if (early_) group.await_predecessors();
          if (t_.divided) consume_divided(warpgroup);
          else consume(warpgroup, warp_bytes);
          return values();
        });
    // A workgroup must not exit while other workgroups copy to its shared memory or arrive at its barriers.
    if (t_.cluster() > 1 && !t_.transposed) hopper_.synchronize_cluster();
    group.close();
  }

 private:
  bool limits_registers() const { return t_.consumers == 2 && t_.registers() > most_sums_without_limits; }

  void set_launch_attributes() {
    auto text = [&](std::string_view s) { return code_.builder.getStringAttr(llvm::StringRef(s.data(), s.size())); };
    llvm::SmallVector<mlir::Attribute> attributes{
        code_.builder.getArrayAttr({text("nvvm.minctasm"), text(early_ || t_.per_unit == 2 ? "2" : "1")})};
    if (t_.cluster() > 1)
      attributes.push_back(
          code_.builder.getArrayAttr({text("nvvm.cluster_dim"), text(std::to_string(t_.cluster()) + ",1,1")}));
    e_.function()->setAttr("passthrough", code_.builder.getArrayAttr(attributes));
  }

  // --- the tiles of this workgroup
  visited_tile place_of(Value tile) {
    return gpu::place_of(e_, hopper_, p_, t_, {tiles_m_, tiles_n_, columns_, last_row_, rank_m_, rank_n_}, tile);
  }

  values each_tile(values carried, const code_builder::loop_body& body) {
    return code_.loop(code_.to_index(first_tile_), open_tiles_ ? e_.size(*open_tiles_) : code_.constant(tiles_),
                      clusters_, std::move(carried),
                      [&](Value tile, std::span<const Value> now) { return body(hopper_.narrow(tile), now); });
  }
  values each_block(Value first, values carried, const code_builder::loop_body& body, std::int64_t step = 1) {
    return code_.loop(code_.to_index(first), code_.to_index(end_block_), step, std::move(carried),
                      [&](Value block, std::span<const Value> now) { return body(hopper_.narrow(block), now); });
  }

  using cursor = stage_cursor;
  cursor next(const cursor& at) { return gpu::next(code_, hopper_, at, t_.stages); }
  Value full(Value stage) { return code_.add(full_, code_.mul(stage, 8)); }
  Value empty(Value stage) { return code_.add(empty_, code_.mul(stage, 8)); }
  Value stage_address(Value stage) { return code_.add(stages_, code_.mul(stage, t_.stage_bytes())); }

  // --- the producer: the warpgroup that copies
  void produce(workgroup& group) {
    if (limits_registers()) hopper_.set_register_limit(producer_registers, false);
    code_.when(code_.equal(thread_, hopper_.number(t_.consumers * group_threads)), [&] {
      for (Value map : {a_map_, b_map_}) hopper_.prefetch_map(map);
      if (second_map_) hopper_.prefetch_map(second_map_);
      // A new barrier is in phase 0. Waiting for the phase before it returns immediately.
      cursor at{hopper_.number(0), hopper_.number(1)};
      Value begun = first_block_;
      if (early_) std::tie(begun, at) = copy_ahead(group);
      each_tile({at.stage, at.parity}, [&](Value tile, std::span<const Value> outer) {
        visited_tile place = place_of(tile);
        Value first = early_ ? code_.select(code_.equal(tile, first_tile_), begun, first_block_) : first_block_;
        return each_block(first, {outer[0], outer[1]}, [&](Value block, std::span<const Value> carried) {
          cursor now{carried[0], carried[1]};
          hopper_.wait(empty(now.stage), now.parity);
          expect_block(now.stage);
          copy_rows(place, block, now.stage);
          copy_columns(place, block, now.stage);
          cursor after = next(now);
          return values{after.stage, after.parity};
        });
      });
      // Not before: what successors read early would delay our own copies.
      if (early_) group.admit_successors();
    });
    // These match the cluster barriers of the consumers.
    if (t_.splits > 1 && t_.transposed) hopper_.wait_for_cluster();
    if (t_.splits > 1) hopper_.synchronize_cluster();
  }

  // Fills the stages for the first blocks of the first tile: with columns of B, and, once the predecessors have ended,
  // with rows of A. Returns the first block that is left, and the stage for it.
  std::pair<Value, cursor> copy_ahead(workgroup& group) {
    const visited_tile place = place_of(first_tile_);
    const Value stages = hopper_.number(t_.stages), count = code_.min(code_.sub(end_block_, first_block_), stages);
    const auto each = [&](const std::function<void(Value block, Value stage)>& body) {
      code_.loop(code_.constant(0), code_.to_index(count), 1, [&](Value i) {
        const Value stage = hopper_.narrow(i);
        body(code_.add(first_block_, stage), stage);
      });
    };
    each([&](Value block, Value stage) {
      expect_block(stage);
      copy_columns(place, block, stage);
    });
    group.await_predecessors();
    each([&](Value block, Value stage) { copy_rows(place, block, stage); });
    const Value wraps = code_.equal(count, stages), zero = hopper_.number(0);
    return {code_.add(first_block_, count),
            {code_.select(wraps, zero, count), code_.select(wraps, zero, hopper_.number(1))}};
  }

  // Copies the tile's rows of A.
  void copy_rows(const visited_tile& place, Value block, Value stage) {
    Value memory = stage_address(stage), k = code_.mul(block, k_elements_);
    if (p_.image) return copy_image(memory, place, block, full(stage));
    for (std::int64_t part = 0; part < t_.parts; ++part) {
      const Value column = p_.a.parts_in_rows ? code_.add(k, part * (p_.a.pitch / t_.parts)) : k;
      copy(p_.a, a_map_, part_of_a(memory, part), place.row, column, matrix(p_.a, place.batch, part), full(stage),
           t_.a_rows(), t_.cluster_n, rank_n_, ((std::int64_t{1} << t_.cluster_n) - 1),
           code_.mul(rank_m_, t_.cluster_n));
    }
  }
  // Copies the tile's columns of B.
  void copy_columns(const visited_tile& place, Value block, Value stage) {
    Value memory = stage_address(stage), k = p_.image ? first_weight(block) : code_.mul(block, k_elements_);
    std::int64_t column_mask = 0;
    for (std::int64_t i = 0; i < t_.cluster_m; ++i) column_mask |= std::int64_t{1} << (i * t_.cluster_n);
    for (std::int64_t part = 0; part < (t_.divided ? 1 : t_.parts); ++part)
      copy(p_.b, b_map_, part_of_b(memory, part), place.column, k, matrix(p_.b, place.batch, part), full(stage),
           columns_, t_.cluster_m, rank_m_, column_mask, rank_n_);
    if (p_.second_b)
      copy(*p_.second_b, second_map_, code_.add(part_of_b(memory, 0), columns_ * row_bytes), place.column, k,
           place.batch, full(stage), columns_, t_.cluster_m, rank_m_, column_mask, rank_n_);
  }

  // --- images: a block is a position of the window and 64 of the channels
  // Announces the bytes of a block at full[stage].
  void expect_block(Value stage) {
    if (copied_rows_) {
      const Value bytes = hopper_.narrow(e_.size(*copied_rows_ * (row_bytes * t_.parts) + columns_bytes()));
      return hopper_.arrive_expecting(full(stage), bytes);
    }
    const std::int64_t rows = p_.image ? p_.image->box_height * p_.image->box_width : t_.a_rows();
    hopper_.arrive_expecting(full(stage), rows * row_bytes * t_.parts + columns_bytes());
  }
  std::int64_t columns_bytes() const { return t_.stage_bytes() - t_.a_rows() * row_bytes * t_.parts; }
  Value first_weight(Value block) {
    Value tap = code_.div(block, channel_blocks_), first = code_.mul(code_.rem(block, channel_blocks_), k_elements_);
    return code_.add(code_.mul(tap, p_.image->channels), first);
  }
  void copy_image(Value memory, const visited_tile& place, Value block, Value barrier) {
    const Value tap = code_.div(block, channel_blocks_),
                channel = code_.mul(code_.rem(block, channel_blocks_), k_elements_);
    const box_place box = box_of(code_, *p_.image, code_.div(place.row, t_.m), tap);
    for (std::int64_t part = 0; part < t_.parts; ++part) {
      const values at{channel, box.x, box.y, matrix(p_.a, box.image, part)};
      hopper_.copy_box(part_of_a(memory, part), a_map_, at, barrier, std::nullopt, Value());
    }
  }

  // A stage holds all parts of A's block, then those of B's.
  Value part_of_a(Value stage, std::int64_t part) { return code_.add(stage, part * t_.a_rows() * row_bytes); }
  Value part_of_b(Value stage, std::int64_t part) {
    return code_.add(stage, (t_.parts * t_.a_rows() + part * t_.n) * row_bytes);
  }
  // The number of a part's matrix in the tensor map.
  Value matrix(const wgmma_operand& from, Value batch, std::int64_t part) {
    if (from.parts == 1 || from.parts_in_rows) return batch;
    return from.memory.sizes[0] == 1 ? hopper_.number(part) : code_.add(code_.mul(batch, t_.parts), part);
  }

  // Copies our part of `rows` rows from `row` on to the `sharers` workgroups in `mask` << `shift`.
  void copy(const wgmma_operand& from, Value map, Value memory, Value row, Value k, Value batch, Value barrier,
            std::int64_t rows, std::int64_t sharers, Value part, std::int64_t mask, Value shift) {
    auto box = [&](Value to, Value first_row, Value first_k) {
      values at = from.k_inner ? values{first_k, first_row} : values{first_row, first_k};
      if (from.parts > 1 ? !from.parts_in_rows : from.batch_pitch && p_.batch > 1) at.push_back(batch);
      hopper_.copy_box(to, map, at, barrier, sharers > 1 ? std::optional(mask) : std::nullopt, shift);
    };
    const std::int64_t own = rows / sharers, of_box = row_bytes * 8 / storage_bits(from.memory.type);
    Value first_row = code_.add(row, code_.mul(part, own)), to = code_.add(memory, code_.mul(part, own * row_bytes));
    if (from.k_inner)
      for (std::int64_t i = 0; i < k_elements_ / of_box; ++i)
        box(code_.add(to, i * own * row_bytes), first_row, code_.add(k, i * of_box));
    else
      for (std::int64_t i = 0; i < own / of_box; ++i)
        box(code_.add(to, i * block_bytes), code_.add(first_row, i * of_box), k);
  }

  // --- the consumers: the warpgroups that multiply
  void consume(Value warpgroup, std::int64_t warp_bytes) {
    if (limits_registers()) hopper_.set_register_limit(consumer_registers, true);
    Value in_group = code_.rem(thread_, group_threads);
    const transposed_epilogue transposed(e_, hopper_, p_, t_, t_.splits > 1 ? rank_ : hopper_.number(0),
                                         epilogue_memory_);
    each_tile({hopper_.number(0), hopper_.number(0)}, [&](Value tile, std::span<const Value> outer) {
      values carried{outer[0], outer[1]};
      for (std::int64_t product = 0; product < (t_.turned ? p_.products() : 1); ++product)
        for (Value v : hopper_.undefined_sums(shape_))
          carried.push_back(t_.block_sums ? code_.number(v.getType(), 0) : v);
      if (t_.transposed) transposed.prefetch(place_of(tile).column, in_group);
      const std::size_t end_of_sums = carried.size();
      carried.resize(end_of_sums + static_cast<std::size_t>(squares_.count()),
                     code_.number(code_.builder.getF32Type(), 0));
      carried = each_block(first_block_, carried, [&](Value block, std::span<const Value> now) {
        cursor at{now[0], now[1]};
        hopper_.wait(full(at.stage), at.parity);
        if (t_.block_sums) return add_block(at, warpgroup, in_group, values(now.begin() + 2, now.end()));
        // Consumers share the rows of a turned tile, and the columns of others.
        const Value own = code_.mul(warpgroup, t_.turned ? block_bytes : t_.row_blocks() * block_bytes);
        Value a = stage_address(at.stage), b = code_.add(stage_address(at.stage), t_.a_rows() * row_bytes);
        if (t_.turned) b = code_.add(b, own);
        else a = code_.add(a, own);
        const auto squares_begin = now.begin() + static_cast<std::ptrdiff_t>(end_of_sums);
        if (t_.transposed || t_.turned) std::swap(a, b);
        values sums = multiply(a, b, code_.sub(block, first_block_), values(now.begin() + 2, squares_begin));
        const values squares = squares_.add(stage_memory_, at.stage, in_group, values(squares_begin, now.end()));
        hopper_.wait_all_but_last();
        release(at.stage, in_group, code_.less(first_block_, block));
        cursor after = next(at);
        values result{after.stage, after.parity};
        result.insert(result.end(), sums.begin(), sums.end());
        result.insert(result.end(), squares.begin(), squares.end());
        return result;
      });
      values sums(carried.begin() + 2, carried.begin() + static_cast<std::ptrdiff_t>(end_of_sums));
      if (!t_.block_sums) {
        sums = hopper_.finish(sums);
        release(carried[0], in_group, {});
      }
      visited_tile place = place_of(tile);
      if (t_.transposed) {
        if (t_.splits > 1) hopper_.wait_for_cluster();
        const values squares(carried.begin() + static_cast<std::ptrdiff_t>(end_of_sums), carried.end());
        transposed.write(sums, squares, place.column, in_group);
        return values{carried[0], carried[1]};
      }
      if (t_.turned) {
        end_divided_tile(e_, hopper_, p_, t_,
                         {place, {stage_memory_, stages_, thread_, rank_}, warpgroup, in_group, epilogue_memory_},
                         sums);
        return values{carried[0], carried[1]};
      }
      Value warp = code_.div(in_group, 32), lane = code_.rem(in_group, 32);
      Value row =
          code_.add(place.row, code_.add(code_.mul(warpgroup, t_.row_blocks() * block_rows), code_.mul(warp, 16)));
      Value shared =
          byte_address(code_, epilogue_memory_, code_.mul(code_.add(code_.mul(warpgroup, 4), warp), warp_bytes));
      squares_.scale(sums, values(carried.begin() + static_cast<std::ptrdiff_t>(end_of_sums), carried.end()),
                     scale_memory_, in_group);
      wgmma_tile part_of_tile = t_;
      Value column = place.column;
      values seconds;
      if (p_.second_b) {
        part_of_tile.n = columns_;
        // Of each 64 rows, those of the first product's columns come first.
        const std::ptrdiff_t own = columns_ / 2;
        const values all = std::exchange(sums, {});
        for (auto block = all.begin(); block != all.end(); block += 2 * own) {
          sums.insert(sums.end(), block, block + own);
          seconds.insert(seconds.end(), block + own, block + 2 * own);
        }
      }
      if (t_.splits > 1) {
        // Each workgroup of the cluster completes a part of the columns.
        sums = add_splits(code_, hopper_, t_, sums, {stage_memory_, stages_, thread_, rank_});
        part_of_tile.n = t_.n / t_.splits, part_of_tile.cluster_n = t_.splits;
        column = code_.add(column, code_.mul(rank_, part_of_tile.n));
      }
      emit_wgmma_epilogue(e_, hopper_, p_, part_of_tile, {place.batch, row, column, lane, shared, place.own_row}, sums,
                          seconds);
      return values{carried[0], carried[1]};
    });
  }

  // Adds the products of a block to the sums; of a turned tile, those of each product have columns of their own.
  values multiply(Value a, Value b, Value accumulate, const values& sums) {
    if (!t_.turned) return hopper_.multiply_block(shape_, a, b, accumulate, sums);
    values result;
    const std::ptrdiff_t count = hopper_code::count_sums(shape_);
    for (auto own = sums.begin(); own != sums.end(); own += count) {
      const values next = hopper_.multiply_block(shape_, a, b, accumulate, values(own, own + count));
      result.insert(result.end(), next.begin(), next.end());
      a = code_.add(a, t_.consumers * block_bytes);
    }
    return result;
  }

  // --- the consumers of a divided tile
  void consume_divided(Value warpgroup) {
    if (limits_registers()) hopper_.set_register_limit(consumer_registers, true);
    const divided_weights weights(code_, hopper_, t_, p_.b.k_inner);
    const Value in_group = code_.rem(thread_, group_threads), second = code_.equal(warpgroup, hopper_.number(1)),
                first_column = t_.in_turn() ? hopper_.number(0) : code_.mul(warpgroup, block_rows),
                first_block = t_.in_turn() ? code_.add(first_block_, warpgroup) : first_block_;
    weights.begin_turns(warpgroup);
    each_tile({hopper_.number(0), hopper_.number(0)}, [&](Value tile, std::span<const Value> outer) {
      const cursor start{outer[0], outer[1]}, own = t_.in_turn() ? select(code_, second, next(start), start) : start;
      values carried{own.stage, own.parity};
      for (Value v : hopper_.undefined_sums(shape_)) carried.push_back(code_.number(v.getType(), 0));
      carried = each_block(
          first_block, carried,
          [&](Value, std::span<const Value> now) {
            const cursor at{now[0], now[1]};
            hopper_.wait(full(at.stage), at.parity);
            const Value block = byte_address(code_, stage_memory_, part_of_b(code_.mul(at.stage, t_.stage_bytes()), 0));
            const values of_block = hopper_.finish(
                weights.multiply(shape_, block, stage_address(at.stage), first_column, in_group, warpgroup));
            cursor after = next(at);
            release(after.stage, in_group, {});
            if (t_.in_turn()) after = next(after);
            values result{after.stage, after.parity};
            for (std::size_t i = 0; i < of_block.size(); ++i)
              result.push_back(code_.make<mlir::arith::AddFOp>(now[i + 2], of_block[i]));
            return result;
          },
          t_.in_turn() ? 2 : 1);
      cursor end{carried[0], carried[1]};
      if (t_.in_turn()) {
        weights.end_blocks(warpgroup, code_.sub(end_block_, first_block_));
        end = advanced(code_, hopper_, start, blocks_, t_.stages);
      }
      end_divided_tile(
          e_, hopper_, p_, t_,
          {place_of(tile), {stage_memory_, stages_, thread_, rank_}, warpgroup, in_group, epilogue_memory_},
          values(carried.begin() + 2, carried.end()));
      return values{end.stage, end.parity};
    });
    weights.end_turns(warpgroup);
  }

  // Multiplies a block, or its parts, and adds the result to the sums. The block has sums of its own, because the
  // matrix unit rounds toward zero, and keeps 13 bits or so of sums of 8-bit floats: what it adds up stays short, and
  // the vector unit does the rest.
  values add_block(const cursor& at, Value warpgroup, Value in_group, const values& sums) {
    Value memory = stage_address(at.stage), first_block = code_.mul(warpgroup, t_.row_blocks() * block_bytes);
    values of_block = hopper_.undefined_sums(shape_);
    // The last product is that of the first parts.
    const auto products = std::span(part_products).last(t_.parts > 1 ? part_products.size() : 1);
    for (const part_product& each : products)
      of_block = hopper_.multiply_block(shape_, code_.add(part_of_a(memory, each.a), first_block),
                                        part_of_b(memory, each.b), hopper_.number(&each != &products[0]), of_block);
    of_block = hopper_.finish(of_block);
    cursor after = next(at);
    release(after.stage, in_group, {});
    values result{after.stage, after.parity};
    for (std::size_t i = 0; i < sums.size(); ++i)
      result.push_back(code_.make<mlir::arith::AddFOp>(sums[i], of_block[i]));
    return result;
  }

  // Releases the stage before `stage`: one thread per workgroup that copies to the stage arrives at that workgroup's
  // barrier.
  void release(Value stage, Value in_group, Value condition) {
    Value previous =
        code_.select(code_.equal(stage, hopper_.number(0)), hopper_.number(t_.stages - 1), code_.sub(stage, 1));
    const std::int64_t sharers = t_.cluster_m + t_.cluster_n - 1;
    const Value releaser = releasers_ > 1 ? code_.rem(in_group, group_threads / releasers_) : in_group;
    Value arrives =
        sharers == 1 ? code_.equal(releaser, hopper_.number(0)) : code_.less(in_group, hopper_.number(sharers));
    if (condition) arrives = code_.make<mlir::arith::AndIOp>(arrives, condition);
    code_.when(arrives, [&] {
      if (sharers == 1) return hopper_.arrive(empty(previous));
      // Threads 0 to cluster_n - 1 address our row of the cluster, the other threads our column without ourselves.
      Value along_row = code_.add(code_.mul(rank_m_, t_.cluster_n), in_group);
      Value step = code_.sub(in_group, t_.cluster_n - 1);
      Value other = code_.rem(code_.add(rank_m_, step), t_.cluster_m);
      Value along_column = code_.add(code_.mul(other, t_.cluster_n), rank_n_);
      hopper_.arrive_at(empty(previous),
                        code_.select(code_.less(in_group, hopper_.number(t_.cluster_n)), along_row, along_column));
    });
  }

  kernel_emitter& e_;
  code_builder& code_;
  const wgmma_problem& p_;
  const wgmma_tile& t_;
  hopper_code hopper_;
  row_squares squares_;
  wgmma_shape shape_;
  bool early_ = false;
  // columns_: of each product in a tile. releasers_: threads of a warpgroup that release a stage.
  std::int64_t k_elements_, channel_blocks_, blocks_, columns_, tiles_m_, tiles_n_, tiles_, clusters_, releasers_ = 1;
  // Of open problems: the number of tiles, the last row that a tile begins with, and the rows that a copy brings.
  std::optional<dim> open_tiles_, last_row_, copied_rows_;
  Value a_map_, b_map_, second_map_, scale_memory_, stage_memory_, stages_, full_, empty_, epilogue_memory_;
  Value thread_, rank_, rank_m_, rank_n_, first_tile_, first_block_, end_block_;
};

}  // namespace

void emit_wgmma(kernel_emitter& e, const wgmma_problem& problem, const wgmma_tile& tile) {
  wgmma_writer(e, problem, tile).write();
}

}  // namespace kiln::gpu
