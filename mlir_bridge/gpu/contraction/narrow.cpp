#include "mlir_bridge/gpu/contraction/narrow.hpp"

#include <algorithm>

#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/contraction/epilogue.hpp"
#include "mlir_bridge/gpu/contraction/gather.hpp"
#include "mlir_bridge/gpu/contraction/loads_first.hpp"
#include "mlir_bridge/gpu/contraction/multiplier.hpp"
#include "mlir_bridge/gpu/contraction/packed_product.hpp"
#include "mlir_bridge/gpu/contraction/row_scales.hpp"
#include "mlir_bridge/gpu/intrinsics.hpp"
#include "mlir_bridge/gpu/matrix_product.hpp"

namespace kiln::gpu {

namespace {

class narrow_kernel {
 public:
  narrow_kernel(kernel_emitter& e, const contraction_problem& problem, const narrow_product_shape& shape)
      : e_(e),
        code_(e.code),
        problem_(problem),
        shape_(shape),
        types_(problem.types()),
        row_columns_(ceil_div(problem.n.value(), shape.columns())),
        group_(e, "narrow", problem.batch * row_columns_ * problem.used, shape.waves * e.target.gpu.wave),
        shifted_(is_shifted(e.target.gpu, types_)) {
    batch_ = code_.div(group_.block(), row_columns_);
    first_column_ = code_.mul(code_.rem(group_.block(), row_columns_), shape.columns());
    group_elements_ = shape.chunks * shape.together * elements_of_chunk(types_.factor);
    step_ = group_elements_ * shape.waves * shape.unroll;
    if (problem.epsilon) scales_.emplace(e, problem, group_, shape.unit);
    kept_lds_ = group_.lds_used();
  }

  void emit() {
    if (shape_.unit) product_.emplace(e_, *shape_.unit, types_);
    else chunks_.emplace(e_, types_);
    const std::int64_t steps = ceil_div(problem_.k.value(), step_);
    values sums = shape_.stages ? run_copies(steps) : run_loads(steps);
    if (scales_) {
      const auto end_of_sums = static_cast<std::size_t>(std::ssize(sums) - scales_->sums());
      scales_->store(std::span(sums).subspan(end_of_sums));
      sums.resize(end_of_sums);
    }
    if (begins_early() && !admits_first()) group_.admit_successors();
    if (shape_.stages) group_.barrier();
    write(finished(std::move(sums)));
    constexpr std::int64_t half_of_threads = 1024;
    // Packed weights need more registers once they are unpacked.
    const std::int64_t threads = group_.threads() * (shape_.together > 1 ? 2 : 1);
    if (!shape_.stages && (shape_.together == 1 || loads_packed_early()))
      keep_loads_in_place(e_, std::max<std::int64_t>(1, half_of_threads / threads));
    group_.close();
  }

 private:
  // On the vector unit, neighbouring lanes read neighbouring chunks of one row. Every lane holds all rows of A as its
  // parts.
  factor_map b_map() const {
    if (shape_.grouped) return shape_.unit->a;
    return shape_.unit ? shape_.unit->b
                       : factor_map{static_cast<int>(shape_.chunks), static_cast<int>(shape_.columns_of_tile), 1, 0, 1,
                                    static_cast<int>(shape_.chunks)};
  }
  factor_map a_map() const {
    if (!shape_.unit) return factor_map{1, 1, static_cast<int>(shape_.rows), 1, 1, static_cast<int>(shape_.chunks)};
    factor_map map = shape_.grouped ? shape_.unit->b : shape_.unit->a;
    map.parts = static_cast<int>(shape_.row_parts);
    return map;
  }

  std::int64_t all_tiles() const { return shape_.tiles * shape_.products; }

  // Sums of the tiles of all products. If A is shifted, those of the rows of -128 follow (matrix_product::minus_128).
  // Behind them are the sums of squares of A's rows (row_scales::sums).
  values zeros() {
    if (product_) {
      values sums = product_->zeros(all_tiles() * (shifted_ ? 2 : 1));
      if (scales_)
        sums.resize(sums.size() + static_cast<std::size_t>(scales_->sums()),
                    code_.number(code_.builder.getF32Type(), 0));
      return sums;
    }
    return values(static_cast<std::size_t>(all_tiles() * (shape_.rows + (shifted_ ? 1 : 0))),
                  code_.number(code_.scalar_type(types_.sum), 0));
  }

  values finished(values sums) {
    if (!shifted_) return sums;
    const std::size_t of_tile = static_cast<std::size_t>(product_ ? product_->values_per_tile() : shape_.rows),
                      count = static_cast<std::size_t>(all_tiles()) * of_tile;
    for (std::size_t i = 0; i < count; ++i)
      sums[i] = code_.make<mlir::arith::SubIOp>(sums[i], sums[count + (product_ ? i : i / of_tile)]);
    sums.resize(count);
    return sums;
  }

  struct wanted_chunk {
    const operand* from;
    element_request request;
    // Number of consecutive chunks.
    std::int64_t count = 1;
  };

  // Appends the chunks that this lane needs of `tiles` tiles in the order of their fragments: the first chunk of each
  // `together`.
  void want(std::vector<wanted_chunk>& wanted, const operand& from, const factor_map& map, Value first_row,
            std::int64_t tiles, std::int64_t rows_of_tile, Value k_tile, std::int64_t u) {
    const std::int64_t elements = elements_of_chunk(types_.factor) * shape_.together;
    Value row = code_.add(first_row, code_.rem(code_.div(group_.lane(), map.row_divisor), map.row_modulus));
    Value chunk =
        map.whole_row ? code_.constant(0) : code_.rem(code_.div(group_.lane(), map.chunk_divisor), map.chunks);
    Value k = code_.add(code_.add(code_.mul(group_.wave(), group_elements_), code_.mul(chunk, elements)),
                        u * shape_.waves * group_elements_);
    for (std::int64_t tile = 0; tile < tiles; ++tile)
      for (std::int64_t part = 0; part < map.parts; ++part)
        for (std::int64_t c = 0; c < (map.whole_row ? map.chunks : 1); ++c)
          wanted.push_back({&from,
                            {.batch = batch_,
                             .row = code_.add(row, tile * rows_of_tile + part * map.part_rows),
                             .k_tile = k_tile,
                             .k_inner = code_.add(k, c * elements),
                             .k_step = step_,
                             .beyond = !divides(step_, from.depth)}});
  }

  // Appends the chunks of B for one step.
  std::vector<wanted_chunk> wanted_of_b(Value step, std::int64_t u) {
    std::vector<wanted_chunk> result;
    const auto want_of = [&](const operand& b) {
      want(result, b, b_map(), first_column_, shape_.tiles, shape_.columns_of_tile, code_.mul(step, step_), u);
    };
    want_of(problem_.b);
    if (problem_.second) want_of(problem_.second->b);
    for (wanted_chunk& w : result) w.count = shape_.together;
    return result;
  }
  std::vector<wanted_chunk> wanted_of_a(Value step, std::int64_t u) {
    std::vector<wanted_chunk> result;
    want(result, problem_.a, a_map(), code_.constant(0), 1, shape_.rows, code_.mul(step, step_), u);
    return result;
  }
  // Returns the chunks of B's tiles, then those of A's only tile.
  std::vector<wanted_chunk> wanted(Value step, std::int64_t u) {
    std::vector<wanted_chunk> result = wanted_of_b(step, u), of_a = wanted_of_a(step, u);
    result.insert(result.end(), of_a.begin(), of_a.end());
    return result;
  }

  // Appends the loaded chunks to those of each of the `together` turns.
  void gather(evaluator& ev, const std::vector<wanted_chunk>& wanted, std::vector<values>& result) {
    result.resize(static_cast<std::size_t>(shape_.together));
    for (const wanted_chunk& w : wanted) {
      element_request request = w.request;
      for (std::int64_t c = 0; c < shape_.together; c += w.count) {
        request.k_inner = code_.add(w.request.k_inner, c * elements_of_chunk(types_.factor));
        std::vector<gathered_chunk> found = gather_chunks(e_, ev, *w.from, types_.factor, request, w.count);
        for (std::size_t i = 0; i < found.size(); ++i) {
          Value chunk = found[i].masked(code_);
          const bool of_a = w.from == &problem_.a;
          result[static_cast<std::size_t>(c) + i].push_back(shifted_ && of_a ? shifted(code_, chunk) : chunk);
        }
      }
    }
  }

  void multiply(const values& chunks, values& sums) {
    const auto per_tile = static_cast<std::size_t>(b_map().parts * (b_map().whole_row ? b_map().chunks : 1));
    std::vector<fragment> right;
    std::size_t next = 0;
    for (std::int64_t tile = 0; tile < all_tiles(); ++tile, next += per_tile)
      right.push_back({values(chunks.begin() + static_cast<std::ptrdiff_t>(next),
                              chunks.begin() + static_cast<std::ptrdiff_t>(next + per_tile))});
    fragment left{values(chunks.begin() + static_cast<std::ptrdiff_t>(next), chunks.end())};
    if (shape_.unit && shape_.row_parts < shape_.unit->a.parts)
      left.chunks.resize(left.chunks.size() * static_cast<std::size_t>(shape_.unit->a.parts / shape_.row_parts),
                         code_.integer(chunk_type(code_), 0));
    multiply(left, right, sums);
    if (scales_) scales_->add(left.chunks, std::span(sums).last(static_cast<std::size_t>(scales_->sums())));
  }

  // All loads are issued before the first multiplication. Packed weights take four times as many registers once
  // unpacked, so their loads are all issued before the first unpacking. The first loads of B do not wait for preceding
  // kernels (launch::early_arguments).
  values run_loads(std::int64_t steps) {
    values sums = zeros();
    if (begins_early()) sums = run_step(code_.constant(0), std::move(sums), true);
    else if (scales_) scales_->load();
    const std::int64_t done = begins_early() ? 1 : 0;
    if (done == steps) return sums;
    return code_.loop(done, steps, 1, std::move(sums), [&](Value step, std::span<const Value> so_far) {
      return run_step(step, values(so_far.begin(), so_far.end()), false);
    });
  }

  // Reading weights before the preceding kernels end is worth it for large ones only: small ones are in a cache.
  bool begins_early() const {
    constexpr std::int64_t least_bytes = 1 << 20;
    return e_.target.gpu.dependent_launch && problem_.batch == dim(1) &&
           problem_.n.value() * problem_.k.value() * storage_bits(types_.factor) / 8 >= least_bytes;
  }

  // The next kernel may be placed as soon as our own first loads are on their way: what it reads early comes behind
  // them. The launch of a kernel then takes no time of a decoder's step: one row of 16 layers 656 instead of 694 us
  // (H200, bench/README.md). A kernel that reads weights in many turns would have to share the memory.
  bool admits_first() const {
    constexpr std::int64_t most_steps = 4;
    return !shape_.stages && ceil_div(problem_.k.value(), step_) <= most_steps;
  }

  // Packed weights are loaded before preceding kernels end, where those of all columns are and their rows take few
  // registers.
  bool loads_packed_early() const {
    return begins_early() && e_.target.family == target_family::nvidia &&
           (shape_.row_parts == 1 || problem_.m == dim(1));
  }

  // Waits for preceding kernels. What was read before are the arguments from number `first` on.
  void wait_early(std::size_t first) {
    for (std::size_t i = first; i < e_.arguments().size(); ++i)
      e_.current().early_arguments.push_back(static_cast<std::uint32_t>(i));
    group_.await_predecessors();
  }

  void begin_after_predecessors(std::size_t first_argument) {
    if (admits_first()) group_.admit_successors();
    wait_early(first_argument);
    prefetch_epilogue();
    if (scales_) scales_->load();
  }

  // Asks for the tensors of the result's form that the epilogue reads, such as a residual, because that is where the
  // last of the workgroups ends. The preceding kernels must have ended.
  void prefetch_epilogue() {
    const value result = e_.anchor_result();
    if (e_.target.family != target_family::nvidia || result.type().rank() != 2) return;
    for (value v : e_.fusion.parameters()) {
      const std::optional<buffer> memory = e_.in_memory(v);
      if (v.type().dims != result.type().dims || v == e_.anchor()->inputs()[0] || storage_bits(memory->type) < 8)
        continue;
      code_.when(code_.less(group_.thread(), e_.size(problem_.m)), [&] {
        const Value place = code_.add(code_.mul(group_.thread(), problem_.n.value()), first_column_);
        const dim elements = problem_.m * problem_.n;
        prefetch(code_, code_.address(e_.pointer(*memory), e_.min(place, elements - 1), memory->type));
      });
    }
  }

  // A step of packed weights whose scales multiply the sums of their group. All loads are issued first, those of the
  // weights before preceding kernels end.
  values run_grouped_step(Value step, values sums, bool early) {
    evaluator ev(e_);
    const std::size_t arguments = e_.arguments().size();
    const auto unroll = static_cast<std::size_t>(shape_.unroll);
    std::vector<std::vector<loaded_codes>> codes(unroll);
    for (std::size_t u = 0; u < unroll; ++u)
      for (const wanted_chunk& w : wanted_of_b(step, static_cast<std::int64_t>(u)))
        codes[u].push_back(
            load_codes(e_, ev, *w.from->packed, w.request.row, code_.add(w.request.k_tile, w.request.k_inner)));
    if (early) begin_after_predecessors(arguments);
    std::vector<std::vector<values>> rows(unroll);
    for (std::size_t u = 0; u < unroll; ++u) gather(ev, wanted_of_a(step, static_cast<std::int64_t>(u)), rows[u]);
    issue_loads(e_);
    for (std::size_t u = 0; u < unroll; ++u) {
      values chunks;
      for (const values& turn : rows[u]) {
        chunks.push_back(turn[0]);
        if (scales_) scales_->add(turn, std::span(sums).last(static_cast<std::size_t>(scales_->sums())));
      }
      add_packed_products(code_, *product_, *shape_.unit, codes[u],
                          is_signed_integer(problem_.b.packed->codes.type().type), chunks, sums);
    }
    return sums;
  }

  values run_step(Value step, values sums, bool early) {
    if (shape_.grouped) return run_grouped_step(step, std::move(sums), early);
    evaluator ev(e_);
    std::vector<std::vector<values>> chunks(static_cast<std::size_t>(shape_.unroll));
    const bool packed = shape_.together > 1;
    mlir::Block* block = code_.builder.getInsertionBlock();
    mlir::Operation* before = block->empty() ? nullptr : &block->back();
    const std::size_t arguments = e_.arguments().size();
    for (std::int64_t u = 0; u < shape_.unroll; ++u)
      gather(ev, packed || early ? wanted_of_b(step, u) : wanted(step, u), chunks[static_cast<std::size_t>(u)]);
    std::vector<std::vector<values>> of_a(static_cast<std::size_t>(shape_.unroll));
    const bool packed_early = early && packed && loads_packed_early();
    if (packed) {
      mlir::Operation* last = loads_first(*block, before);
      mlir::OpBuilder::InsertionGuard guard(code_.builder);
      // Nothing is unpacked before the rows are asked for.
      if (packed_early && last) code_.builder.setInsertionPointAfter(last);
      if (early) begin_after_predecessors(arguments);
      for (std::int64_t u = 0; packed_early && u < shape_.unroll; ++u)
        gather(ev, wanted_of_a(step, u), of_a[static_cast<std::size_t>(u)]);
      if (packed_early) issue_loads(e_);
    } else {
      schedule_barrier(code_, e_.target.family, passing::arithmetic);
      if (early) begin_after_predecessors(arguments);
    }
    // Packed weights need the registers, so A is loaded when it is needed, because it is in a near cache.
    for (std::int64_t u = 0; early && !packed && u < shape_.unroll; ++u)
      gather(ev, wanted_of_a(step, u), chunks[static_cast<std::size_t>(u)]);
    // Of two products, the registers of A would be missed by another workgroup.
    if (!packed && !(early && shape_.products > 1)) issue_loads(e_);
    for (std::int64_t u = 0; u < shape_.unroll; ++u) {
      if (packed && !packed_early) gather(ev, wanted_of_a(step, u), chunks[static_cast<std::size_t>(u)]);
      for (std::size_t turn = 0; turn < of_a[static_cast<std::size_t>(u)].size(); ++turn) {
        const values& loaded = of_a[static_cast<std::size_t>(u)][turn];
        values& all = chunks[static_cast<std::size_t>(u)][turn];
        all.insert(all.end(), loaded.begin(), loaded.end());
      }
      for (const values& of_turn : chunks[static_cast<std::size_t>(u)]) multiply(of_turn, sums);
    }
    return sums;
  }

  // Every lane copies the chunks that it reads into its own part of a ring buffer of stages. So it waits only for its
  // own copies, without barriers.
  values run_copies(std::int64_t steps) {
    const auto count = static_cast<std::int64_t>(wanted(code_.constant(0), 0).size());
    const std::int64_t chunk_step = group_.wave_size() * chunk_bytes, stage_step = shape_.waves * count * chunk_step;
    Value memory = group_.lds(shape_.stages * stage_step);
    Value own = byte_address(
        code_, memory, code_.add(code_.mul(group_.wave(), count * chunk_step), code_.mul(group_.lane(), chunk_bytes)));
    group_.release_lds(kept_lds_);
    mlir::Type i32 = code_.builder.getI32Type();
    // Copies this lane's chunks of B to shared memory, or those of A, which lie behind them.
    auto copy = [&](Value step, Value stage, bool of_b) {
      evaluator ev(e_);
      Value to = byte_address(code_, own, code_.mul(stage, stage_step));
      const std::vector<wanted_chunk> chunks = of_b ? wanted_of_b(step, 0) : wanted_of_a(step, 0);
      std::int64_t i = of_b ? 0 : count - std::ssize(chunks);
      for (const wanted_chunk& w : chunks) {
        auto source = place_of_chunk(e_, ev, *w.from, types_.factor, w.request);
        Value bytes = source->inside
                          ? code_.select(source->inside, code_.integer(i32, chunk_bytes), code_.integer(i32, 0))
                          : code_.integer(i32, chunk_bytes);
        call_intrinsic(code_, "llvm.nvvm.cp.async.cg.shared.global.16.s", {},
                       {byte_address(code_, to, i++ * chunk_step), source->address, bytes});
      }
    };
    const std::int64_t ahead = shape_.stages - 1;
    // The first chunks of B belong to the first group, too, because they do not wait for preceding kernels.
    const std::size_t arguments = e_.arguments().size();
    for (std::int64_t i = 0; i < std::min(ahead, steps); ++i) copy(code_.constant(i), code_.constant(i), true);
    if (begins_early()) wait_early(arguments);
    for (std::int64_t i = 0; i < ahead; ++i) {
      if (i < steps) copy(code_.constant(i), code_.constant(i), false);
      call_intrinsic(code_, "llvm.nvvm.cp.async.commit.group", {});
    }
    if (scales_) scales_->load();
    values carried = zeros();
    carried.push_back(code_.constant(0));
    Value last = unknown(code_, e_.target.family, code_.constant(steps));
    carried = code_.loop(code_.constant(0), last, 1, carried, [&](Value step, std::span<const Value> now) {
      Value read = now.back(),
            write = code_.select(code_.equal(read, code_.constant(0)), code_.constant(ahead), code_.sub(read, 1));
      call_intrinsic(code_, "llvm.nvvm.cp.async.wait.group", {}, {code_.integer(i32, ahead - 1)});
      Value from = byte_address(code_, own, code_.mul(read, stage_step));
      values chunks;
      for (std::int64_t i = 0; i < count; ++i)
        chunks.push_back(load_chunk(code_, byte_address(code_, from, i * chunk_step)));
      Value next = code_.add(step, ahead);
      code_.when(code_.less(next, last), [&] { copy(next, write, true), copy(next, write, false); });
      call_intrinsic(code_, "llvm.nvvm.cp.async.commit.group", {});
      values sums(now.begin(), now.end() - 1);
      multiply(chunks, sums);
      Value following = code_.add(read, 1);
      sums.push_back(code_.select(code_.equal(following, code_.constant(shape_.stages)), code_.constant(0), following));
      return sums;
    });
    carried.pop_back();
    return carried;
  }

  void multiply(const fragment& left, const std::vector<fragment>& right, values& sums) {
    for (std::size_t tile = 0; tile < right.size(); ++tile) {
      if (product_) {
        const auto count = static_cast<std::size_t>(product_->values_per_tile());
        for (std::int64_t step = 0; step < product_->steps_of_fragment(); ++step)
          product_->add(left, right[tile], step, std::span(sums).subspan(tile * count, count));
        for (std::int64_t step = 0; shifted_ && step < product_->steps_of_fragment(); ++step)
          product_->add(product_->minus_128(), right[tile], step,
                        std::span(sums).subspan((right.size() + tile) * count, count));
        continue;
      }
      values b = chunks_->split_b(right[tile].chunks[0]);
      for (std::size_t piece = 0; shifted_ && piece < b.size(); ++piece) {
        Value& sum = sums[right.size() * left.chunks.size() + tile];
        sum = chunks_->add_shift(b[piece], sum);
      }
      for (std::size_t row = 0; row < left.chunks.size(); ++row) {
        values a = chunks_->split_a(left.chunks[row]);
        Value& sum = sums[tile * left.chunks.size() + row];
        for (std::size_t piece = 0; piece < a.size(); ++piece) sum = chunks_->add_product(a[piece], b[piece], sum);
      }
    }
  }

  // Writes a wave's sums as a matrix to shared memory.
  void write_wave(values sums, Value memory) {
    if (product_) {
      const auto count = static_cast<std::size_t>(product_->values_per_tile());
      for (std::int64_t tile = 0; tile < all_tiles(); ++tile) {
        const auto own = std::span<const Value>(sums).subspan(static_cast<std::size_t>(tile) * count, count);
        const std::int64_t column = tile * shape_.columns_of_tile;
        if (shape_.grouped) product_->write_transposed(own, group_.lane(), memory, column, shape_.pitch());
        else product_->write(own, group_.lane(), memory, column, shape_.pitch());
      }
      return;
    }
    auto plus = [&](Value a, Value b) {
      return is_float(types_.sum) ? Value(code_.make<mlir::arith::AddFOp>(a, b))
                                  : code_.make<mlir::arith::AddIOp>(a, b).getResult();
    };
    for (Value& sum : sums) sum = group_.reduce_wave(sum, plus, shape_.chunks);
    code_.when(code_.equal(code_.rem(group_.lane(), shape_.chunks), code_.constant(0)), [&] {
      Value column = code_.mul(code_.div(group_.lane(), shape_.chunks), 4);
      for (std::int64_t tile = 0; tile < all_tiles(); ++tile)
        for (std::int64_t row = 0; row < shape_.rows; ++row)
          code_.make<mlir::LLVM::StoreOp>(sums[static_cast<std::size_t>(tile * shape_.rows + row)],
                                          byte_address(code_, byte_address(code_, memory, column),
                                                       (row * shape_.pitch() + tile * shape_.columns_of_tile) * 4),
                                          4u);
    });
  }

  void write(const values& sums) {
    const std::int64_t slab = shape_.rows * shape_.pitch() * 4;
    Value memory = group_.lds(slab * shape_.waves);
    write_wave(sums, byte_address(code_, memory, code_.mul(group_.wave(), slab)));
    group_.barrier();
    // The few columns of one row are divided among more threads.
    const std::int64_t most_lanes = epilogue_lanes(e_, problem_, shape_.columns()),
                       lanes = problem_.m == dim(1) ? std::min<std::int64_t>(most_lanes, 2) : most_lanes,
                       across = shape_.columns() / lanes,
                       vectors = (problem_.m.is_static() ? problem_.m.value() : shape_.most_rows()) * across;
    result_writer writer(e_, problem_);
    for (std::int64_t first = 0; first < vectors; first += group_.threads()) {
      const bool last_may_be_missing = first + group_.threads() > vectors;
      Value vector = code_.add(group_.thread(), first),
            inside = last_may_be_missing ? code_.min(vector, vectors - 1) : vector;
      Value row = code_.div(inside, across), column = code_.mul(code_.rem(inside, across), lanes);
      const Value address =
          byte_address(code_, memory, code_.mul(code_.add(code_.mul(row, shape_.pitch()), column), 4));
      Value scale = scales_ ? code_.splat(scales_->of(row), lanes) : Value();
      const auto total_at = [&](Value begin) {
        Value total;
        for (std::int64_t wave = 0; wave < shape_.waves; ++wave) {
          Value part =
              code_.make<mlir::LLVM::LoadOp>(code_.type(types_.sum, lanes), byte_address(code_, begin, wave * slab),
                                             static_cast<unsigned>(std::min<std::int64_t>(16, lanes * 4)));
          if (!total) total = part;
          else
            total = is_float(types_.sum) ? Value(code_.make<mlir::arith::AddFOp>(total, part))
                                         : code_.make<mlir::arith::AddIOp>(total, part).getResult();
        }
        return scale ? code_.make<mlir::arith::MulFOp>(total, scale).getResult() : total;
      };
      const Value total = total_at(address),
                  second = problem_.second ? total_at(byte_address(code_, address, shape_.columns() * 4)) : Value();
      if (last_may_be_missing)
        row = code_.select(code_.less(vector, code_.constant(vectors)), row, e_.size(problem_.m));
      writer.add(total, batch_, row, code_.add(first_column_, column), last_may_be_missing || !problem_.m.is_static(),
                 !divides(shape_.columns(), problem_.n), second);
    }
    writer.flush();
  }

  kernel_emitter& e_;
  code_builder& code_;
  const contraction_problem& problem_;
  narrow_product_shape shape_;
  product_types types_;
  std::int64_t row_columns_;
  workgroup group_;
  bool shifted_;
  std::optional<matrix_product> product_;
  std::optional<chunk_product> chunks_;
  std::optional<row_scales> scales_;
  std::int64_t kept_lds_ = 0;
  Value batch_, first_column_;
  std::int64_t group_elements_ = 0, step_ = 0;
};

}  // namespace

void emit_narrow(kernel_emitter& e, const contraction_problem& problem, const narrow_product_shape& shape) {
  narrow_kernel(e, problem, shape).emit();
}

}  // namespace kiln::gpu
