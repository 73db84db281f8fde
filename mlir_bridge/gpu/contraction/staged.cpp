// The pipeline through shared memory: all threads load each step's parts of A and B while the previous step is
// multiplied.
#include "mlir_bridge/gpu/contraction/staged.hpp"

#include <optional>

#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/contraction/epilogue.hpp"
#include "mlir_bridge/gpu/contraction/split_depth.hpp"
#include "mlir_bridge/gpu/contraction/tile_loader.hpp"
#include "mlir_bridge/gpu/intrinsics.hpp"

namespace kiln::gpu {

namespace {

constexpr std::int64_t slab_elements_of_thread = 40;

class staged_pipeline {
 public:
  staged_pipeline(kernel_emitter& e, workgroup& group, const tile_shape& tile, tile_loader& a, tile_loader& b,
                  multiplier& product, Value memory, std::int64_t step_elements)
      : e_(e),
        code_(e.code),
        group_(group),
        tile_(tile),
        a_(a),
        b_(b),
        product_(product),
        memory_(memory),
        step_elements_(step_elements) {}

  // Returns the sums over steps [first, last); there must be at least one.
  values run(Value first, Value last) { return tile_.async ? run_async(first, last) : run_registers(first, last); }

 private:
  Value a_tile(Value stage) { return byte_address(code_, memory_, code_.mul(stage, tile_.stage_bytes())); }
  Value b_tile(Value stage) { return byte_address(code_, a_tile(stage), a_.bytes()); }
  Value depth(Value step) { return code_.mul(step, step_elements_); }
  values multiply(Value stage, values sums) { return product_.multiply(a_tile(stage), b_tile(stage), std::move(sums)); }

  void store(const tile_loader::fetched& a, const tile_loader::fetched& b, Value stage) {
    a_.store(a, a_tile(stage));
    b_.store(b, b_tile(stage));
  }

  values run_registers(Value first, Value last) {
    auto a = a_.fetch(depth(first)), b = b_.fetch(depth(first));
    Value zero = code_.constant(0);
    store(a, b, zero);
    group_.barrier();
    values carried = product_.zeros();
    carried.push_back(zero);
    Value before_last = code_.sub(last, 1);
    carried = code_.loop(first, before_last, 1, carried, [&](Value step, std::span<const Value> now) {
      Value stage = now.back(), next = tile_.stages == 1 ? zero : code_.sub(code_.constant(1), stage);
      // Loads are issued at the beginning of the iteration and stored to shared memory at its end. They are not carried
      // around the loop, because LLVM would undo that.
      auto next_a = a_.fetch(depth(code_.add(step, 1))), next_b = b_.fetch(depth(code_.add(step, 1)));
      schedule_barrier(code_, e_.target.family, passing::arithmetic);
      values sums = multiply(stage, values(now.begin(), now.end() - 1));
      if (tile_.instruction) schedule_barrier(code_, e_.target.family, passing::nothing);
      if (tile_.stages == 1) group_.barrier();
      store(next_a, next_b, next);
      group_.barrier();
      sums.push_back(next);
      return sums;
    });
    Value stage = carried.back();
    carried.pop_back();
    return multiply(stage, std::move(carried));
  }

  void copy(Value step, Value stage) {
    a_.copy(depth(step), a_tile(stage));
    b_.copy(depth(step), b_tile(stage));
  }
  void commit() { call_intrinsic(code_, "llvm.nvvm.cp.async.commit.group", {}); }

  values run_async(Value first, Value last) {
    const std::int64_t ahead = tile_.stages - 1;
    for (std::int64_t i = 0; i < ahead; ++i) {
      Value step = code_.add(first, i);
      code_.when(code_.less(step, last), [&] { copy(step, code_.constant(i)); });
      commit();
    }
    values carried = product_.zeros();
    carried.push_back(code_.constant(0));
    carried.push_back(code_.constant(ahead));
    auto following = [&](Value stage) {
      Value next = code_.add(stage, 1);
      return code_.select(code_.equal(next, code_.constant(tile_.stages)), code_.constant(0), next);
    };
    carried = code_.loop(first, last, 1, carried, [&](Value step, std::span<const Value> now) {
      Value read = now[now.size() - 2], write = now.back();
      call_intrinsic(code_, "llvm.nvvm.cp.async.wait.group", {},
                     {code_.integer(code_.builder.getI32Type(), ahead - 1)});
      group_.barrier();
      Value next = code_.add(step, ahead);
      code_.when(code_.less(next, last), [&] { copy(next, write); });
      commit();
      values sums = multiply(read, values(now.begin(), now.end() - 2));
      sums.push_back(following(read));
      sums.push_back(following(write));
      return sums;
    });
    carried.resize(carried.size() - 2);
    return carried;
  }

  kernel_emitter& e_;
  code_builder& code_;
  workgroup& group_;
  const tile_shape& tile_;
  tile_loader &a_, &b_;
  multiplier& product_;
  Value memory_;
  std::int64_t step_elements_;
};

// Orders tiles in columns of `height` tiles, so that tiles which are computed at the same time share rows and columns.
std::pair<Value, Value> tile_of(kernel_emitter& e, Value number, const dim& tiles_m, const dim& tiles_n) {
  code_builder& code = e.code;
  std::int64_t height = tiles_m.is_static() ? std::min<std::int64_t>(8, tiles_m.value()) : 1;
  while (!divides(height, tiles_m)) --height;
  Value band = e.div(number, height * tiles_n), inside = e.rem(number, height * tiles_n);
  return {code.add(code.mul(band, height), code.rem(inside, height)), code.div(inside, height)};
}

}  // namespace

void emit_staged(kernel_emitter& e, const contraction_problem& problem, const tile_shape& tile) {
  code_builder& code = e.code;
  const product_types types = problem.types();
  const std::int64_t threads = tile.threads(e.target.gpu),
                     step_elements = tile.chunks * elements_of_chunk(types.factor);
  const dim tiles_m = ceil_div(problem.m, tile.m), tiles_n = ceil_div(problem.n, tile.n), tiles = tiles_m * tiles_n;
  const dim steps = ceil_div(problem.k, step_elements);
  const dim wanted = tile.slots ? shared_among(tile, problem.batch * tiles) : tile.splits;
  const dim steps_of_split = wanted == dim(1) ? steps : ceil_div(steps, wanted);
  const dim splits = wanted == dim(1) ? 1 : ceil_div(steps, steps_of_split);
  std::optional<split_depth> split;
  if (tile.slots)
    split.emplace(e, problem.batch * tiles, splits, most_divided_tiles(tile), threads, tile.m * tile.n / threads,
                  types.sum);
  else if (splits.value() > 1)
    split.emplace(e, (problem.batch * tiles).value(), splits.value(), threads, tile.m * tile.n / threads, types.sum);

  workgroup group(e, "product", problem.batch * splits * tiles * problem.used, threads);
  Value number = e.rem(group.block(), tiles), rest = e.div(group.block(), tiles);
  Value part = e.rem(rest, splits), batch = e.div(rest, splits);
  auto [tile_m, tile_n] = tile_of(e, number, tiles_m, tiles_n);
  tile_place place{batch, code.mul(tile_m, tile.m), code.mul(tile_n, tile.n), divides(tile.m, problem.m),
                   divides(tile.n, problem.n)};

  tile_loader a(e, group, problem.a, types.factor, tile.m, tile.chunks, batch, place.first_m,
                !divides(step_elements, problem.a.depth), is_shifted(e.target.gpu, types));
  tile_loader b(e, group, problem.b, types.factor, tile.n, tile.chunks, batch, place.first_n,
                !divides(step_elements, problem.b.depth));
  const std::int64_t pipeline_bytes = tile.stages * tile.stage_bytes();
  // The size of slabs that fit into the pipeline's memory and whose rows leave enough registers for the epilogue's
  // loads.
  const std::int64_t slab_bytes =
      std::min(pipeline_bytes, threads * slab_elements_of_thread * storage_bits(types.sum) / 8);
  auto product = tile.instruction ? make_matrix_multiplier(e, group, tile, types, slab_bytes)
                                  : make_vector_multiplier(e, group, tile, types, slab_bytes);
  Value memory = group.lds(std::max(pipeline_bytes, product->slabs().elements() * storage_bits(types.sum) / 8), 128);

  Value first = e.mul(part, steps_of_split), last;
  if (split) last = e.min(e.add(first, steps_of_split), steps);
  else last = steps.is_static() && steps.value() > 2 ? unknown(code, e.target.family, e.size(steps)) : e.size(steps);
  staged_pipeline pipeline(e, group, tile, a, b, *product, memory, step_elements);
  values sums = product->finished(pipeline.run(first, last));
  group.barrier();
  auto write = [&](const values& total) { write_tile(e, problem, *product, total, place, memory); };
  if (tile.slots) {
    auto [total, has_total] = split->combine_open(group, code.add(e.mul(batch, tiles), number), part, sums, memory);
    code.when(has_total, [&] {
      group.barrier();
      write(total);
    });
  } else if (split) {
    split->combine(group, code.add(e.mul(batch, tiles), number), part, sums, memory, [&](const values& total) {
      group.barrier();
      write(total);
    });
  } else {
    write(sums);
  }
  group.close();
}

}  // namespace kiln::gpu
