#include "mlir_bridge/gpu/wgmma/divided_epilogue.hpp"

#include <algorithm>
#include <numeric>

#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_epilogue.hpp"

namespace kiln::gpu {

namespace {

constexpr std::int64_t group_threads = 128, columns = 64, most_lanes = 4;

// Where a warpgroup's part begins in the result, as i32; `own_row` is that of wgmma_place. `barrier`: a number that
// only this warpgroup uses.
struct part_place {
  Value batch, row, column, own_row, in_group, memory, barrier;
};

class writer {
 public:
  writer(kernel_emitter& e, hopper_code& hopper, const wgmma_problem& problem, const wgmma_tile& tile,
         const part_place& place)
      : e_(e), code_(e.code), hopper_(hopper), problem_(problem), tile_(tile), place_(place) {
    lanes_ = std::gcd(most_lanes, problem.n);
    for (value v : e.outputs())
      lanes_ =
          std::min<std::int64_t>(lanes_, std::max<std::int64_t>(1, 128 / std::max(8, storage_bits(v.type().type))));
  }

  void write(const values& sums) {
    const std::int64_t products = problem_.products(), of_product = static_cast<std::int64_t>(sums.size()) / products,
                       all = of_product * 2, step = divided_rows / products;
    for (std::int64_t first = 0; first < all; first += step) {
      const std::int64_t rows = std::min(step, all - first);
      // The warpgroup may still read the rows before.
      hopper_.synchronize_threads(place_.barrier, group_threads);
      for (std::int64_t product = 0; product < products; ++product)
        exchange(std::span(sums).subspan(static_cast<std::size_t>(product * of_product + first / 2),
                                         static_cast<std::size_t>(rows / 2)),
                 product * rows);
      hopper_.synchronize_threads(place_.barrier, group_threads);
      complete(first, rows);
    }
  }

 private:
  // Register layout of a warpgroup's product: thread l of warp w holds rows 16 w + l / 4 and 16 w + l / 4 + 8, which
  // are columns of the result, and columns 8 j + 2 (l % 4) and the next one, which are rows of it.
  void exchange(std::span<const Value> sums, std::int64_t first_row) {
    const Value warp = code_.div(place_.in_group, 32), lane = code_.rem(place_.in_group, 32);
    const Value column = code_.add(code_.mul(warp, 16), code_.div(lane, 4)), row = code_.mul(code_.rem(lane, 4), 2);
    const Value start =
        byte_address(code_, place_.memory, code_.mul(code_.add(code_.mul(row, divided_pitch), column), 4));
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i), further = at / 4 * 8 + at % 2, half = at / 2 % 2;
      code_.make<mlir::LLVM::StoreOp>(
          sums[i], byte_address(code_, start, ((first_row + further) * divided_pitch + half * 8) * 4), 4u);
    }
  }

  struct result {
    position where;
    Value exists;
    values outputs;
  };

  void complete(std::int64_t first, std::int64_t rows) {
    std::vector<result> results;
    const std::int64_t across = columns / lanes_;
    for (std::int64_t i = 0; i < rows * across; i += group_threads)
      results.push_back(evaluate(first, rows, code_.add(place_.in_group, i), across));
    for (const result& r : results) {
      const auto store = [&] {
        evaluator ev(e_);
        for (std::size_t i = 0; i < r.outputs.size(); ++i) ev.store(e_.output(i), r.where, r.outputs[i]);
      };
      if (r.exists) code_.when(r.exists, store);
      else store();
    }
  }

  result evaluate(std::int64_t first, std::int64_t rows, Value vector, std::int64_t across) {
    const mlir::Type type = code_builder::with_lanes(code_.builder.getF32Type(), lanes_);
    const Value row = code_.div(vector, across), inside = code_.mul(code_.rem(vector, across), lanes_);
    const Value from =
        byte_address(code_, place_.memory, code_.mul(code_.add(code_.mul(row, divided_pitch), inside), 4));
    const auto sum_of = [&](std::int64_t product) -> Value {
      return code_.make<mlir::LLVM::LoadOp>(type, byte_address(code_, from, product * rows * divided_pitch * 4),
                                            static_cast<unsigned>(lanes_ * 4));
    };
    const auto found =
        result_row(e_, hopper_, problem_, tile_, code_.add(code_.add(place_.row, row), first), place_.own_row);
    result r;
    r.exists = found.second;
    Value column = code_.add(place_.column, inside);
    if (problem_.n % (tile_.n / problem_.products()) != 0) {
      r.exists = both(code_, r.exists, code_.less(column, hopper_.number(problem_.n)));
      column = code_.min(column, problem_.n - lanes_);
    }
    r.where = problem_.locate(code_.to_index(place_.batch), code_.to_index(found.first));
    r.where.push_back({code_.to_index(column), lanes_ > 1 ? 1 : 0, {}, 0, problem_.n, lanes_});
    evaluator ev(e_);
    ev.bind(e_.anchor_result(), sum_of(0));
    if (problem_.second_b) ev.bind(problem_.second, sum_of(1));
    for (value v : e_.outputs()) r.outputs.push_back(ev.at(v, r.where, lanes_));
    return r;
  }

  kernel_emitter& e_;
  code_builder& code_;
  hopper_code& hopper_;
  const wgmma_problem& problem_;
  const wgmma_tile& tile_;
  const part_place& place_;
  std::int64_t lanes_ = 1;
};

}  // namespace

void end_divided_tile(kernel_emitter& e, hopper_code& hopper, const wgmma_problem& problem, const wgmma_tile& tile,
                      const divided_place& place, const values& sums) {
  code_builder& code = e.code;
  constexpr std::int64_t first_barrier = 2;
  const auto memory_of = [&](Value warpgroup) {
    return byte_address(code, place.memory, code.mul(warpgroup, divided_exchange_bytes(tile)));
  };
  values totals = sums;
  Value row = place.tile.row, column = place.tile.column;
  if (tile.in_turn()) {
    totals = exchange_halves(code, hopper, totals, place.warpgroup, place.in_group, memory_of(place.warpgroup),
                             memory_of(code.sub(hopper.number(1), place.warpgroup)));
    row = code.add(row, code.mul(place.warpgroup, tile.m / 2));
  } else {
    column = code.add(column, code.mul(place.warpgroup, columns));
  }
  if (tile.splits > 1) {
    wgmma_tile turned = tile;
    turned.m = tile.consumers * columns, turned.n = completed_rows(tile) * tile.splits;
    totals = add_splits(code, hopper, turned, totals, place.split);
    row = code.add(row, code.mul(place.split.rank, completed_rows(tile)));
  }
  const part_place part{place.tile.batch,
                        row,
                        column,
                        place.tile.own_row,
                        place.in_group,
                        memory_of(place.warpgroup),
                        code.add(place.warpgroup, first_barrier)};
  writer(e, hopper, problem, tile, part).write(totals);
}

}  // namespace kiln::gpu
