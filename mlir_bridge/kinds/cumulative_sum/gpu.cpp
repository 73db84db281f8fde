// cumulative_sum. A workgroup processes a row in tiles: each thread sums its few elements, then lanes and waves
// exchange the sums of the elements before theirs. If there are many rows, each thread computes a row alone. "each"
// (elements of a thread in a tile) and "threads" of the configuration overrule the choice.
#include <algorithm>
#include <utility>

#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/gpu/streaming_cost.hpp"
#include "mlir_bridge/gpu/workgroup.hpp"
#include "mlir_bridge/kinds/cumulative_sum/generators.hpp"

namespace kiln::gpu {

namespace {

namespace arith = mlir::arith;

constexpr std::int64_t standard_each = 4,
                       standard_threads = 256;  // elements of one thread in a tile; threads of a workgroup
constexpr std::int64_t many_rows = 4096;
// Assumed extent of an open axis, for sizing work items.
constexpr std::int64_t usual_extent = 128;

struct scan_emitter {
  kernel_emitter& e;
  code_builder& code;
  const cumulative_sum& op;
  value input;
  element_type type;
  std::size_t axis;
  // The dims, with 1 along the axis.
  std::vector<dim> rows;
  dim extent;

  Value add(Value a, Value b) const {
    return is_float(type) ? code.make<arith::AddFOp>(a, b).getResult() : code.make<arith::AddIOp>(a, b).getResult();
  }
  values at(std::span<const Value> row, Value i) const {
    values where(row.begin(), row.end());
    where[axis] = op.reverse ? code.sub(e.size(extent - 1), i) : i;
    return where;
  }
  Value read(std::span<const Value> row, Value i) const {
    evaluator ev(e);
    return ev.element(input, at(row, i));
  }
  void write(std::span<const Value> row, Value i, Value v) const {
    evaluator ev(e);
    ev.bind(e.anchor_result(), v);
    ev.store_outputs(at(row, i), 1);
  }

  void emit_threads() const {
    e.parallel_open("cumulative_sum", rows, extent.is_static() ? extent.value() : usual_extent,
                    [&](std::span<const Value> row) {
                      code.loop(code.constant(0), e.size(extent), 1, {code.number(code.scalar_type(type), 0)},
                                [&](Value i, std::span<const Value> total) {
                                  Value next = add(total[0], read(row, i));
                                  write(row, i, op.exclusive ? total[0] : next);
                                  return values{next};
                                });
                    });
  }

  void emit_workgroups(const dim& count) const {
    const std::int64_t wave = e.target.gpu.wave;
    const std::int64_t each = std::clamp<std::int64_t>(choose(e.configuration, "each", standard_each), 1, 16),
                       most = std::clamp<std::int64_t>(choose(e.configuration, "threads", standard_threads), wave,
                                                       e.target.gpu.max_threads);
    std::int64_t threads = wave;
    while (threads < most && threads * each < known_bound(extent)) threads *= 2;
    workgroup group(e, "cumulative_sum", count, threads);
    values row = e.delinearize(group.block(), rows);
    Value zero = code.number(code.scalar_type(type), 0),
          slots = group.lds(group.waves() * workgroup::lds_bytes_of(zero));
    std::int64_t tile = threads * each;
    code.loop(code.constant(0), e.size(extent), tile, {zero}, [&](Value begin, std::span<const Value> carried) {
      Value first = code.add(begin, code.mul(group.thread(), each));
      values sums{zero}, places, valid;
      for (std::int64_t i = 0; i < each; ++i) {
        Value place = code.add(first, i),
              inside = known_factor(extent) % tile ? code.less(place, e.size(extent)) : Value();
        Value x = read(row, inside ? e.min(place, extent - 1) : place);
        sums.push_back(add(sums.back(), inside ? code.select(inside, x, zero) : x));
        places.push_back(place), valid.push_back(inside);
      }
      // Returns the sum of the lanes before this one: groups of lanes are combined in pairs, and the upper group adds
      // the total of the lower one.
      Value before = zero, total = sums.back();
      for (std::int64_t mask = 1; mask < wave; mask *= 2) {
        Value other = group.shuffle_xor(total, mask);
        Value upper = code.make<arith::CmpIOp>(arith::CmpIPredicate::ne,
                                               code.make<arith::AndIOp>(group.lane(), code.constant(mask)).getResult(),
                                               code.constant(0));
        before = code.select(upper, add(before, other), before);
        total = add(total, other);
      }
      Value all = total;
      if (group.waves() > 1) {
        code.when(code.equal(group.lane(), code.constant(0)), [&] { group.store_raw(slots, group.wave(), total); });
        group.barrier();
        all = zero;
        for (std::int64_t w = 0; w < group.waves(); ++w) {
          Value of_wave = group.load_raw(slots, code.constant(w), total.getType());
          before = code.select(code.less(code.constant(w), group.wave()), add(before, of_wave), before);
          all = add(all, of_wave);
        }
        group.barrier();
      }
      before = add(carried[0], before);
      for (std::int64_t i = 0; i < each; ++i) {
        auto k = static_cast<std::size_t>(i);
        auto store = [&] { write(row, places[k], add(before, sums[op.exclusive ? k : k + 1])); };
        if (valid[k]) code.when(valid[k], store);
        else store();
      }
      return values{add(carried[0], all)};
    });
    group.close();
  }
};

}  // namespace

std::vector<candidate> cumulative_sum_space(kernel_emitter& e) {
  value input = e.anchor()->inputs()[0];
  const auto dims = kernel_emitter::dims(input);
  const std::int64_t
      extent =
          dims[static_cast<std::size_t>(normalize_axis(e.anchor()->op().get_if<cumulative_sum>()->axis, dims.size()))],
      elements = input.type().element_count();
  if (elements == 0) return {};
  std::vector<candidate> result;
  for (std::int64_t each : {1, 2, 4, 8})
    for (std::int64_t threads : {64, 128, 256, 512, 1024}) {
      // Tiles of a row are sequential; each takes a memory latency, the exchange between lanes, and two barriers.
      constexpr double exchange = 30, barriers = 300;
      const std::int64_t tiles = (extent + threads * each - 1) / (threads * each);
      streaming_work work{
          .groups = elements / extent, .threads = threads, .access_bytes = storage_bits(input.type().type) / 8};
      work.trips = static_cast<double>(tiles);
      work.bytes = static_cast<double>(2 * tiles * each * work.access_bytes);
      work.cycles = static_cast<double>(tiles) * (6 * exchange + barriers);
      result.push_back({{{"each", each}, {"threads", threads}}, streaming_cycles(e.target.gpu, work)});
    }
  return result;
}

void emit_cumulative_sum(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<cumulative_sum>();
  value input = e.anchor()->inputs()[0];
  auto rows = kernel_emitter::sizes(input);
  if (std::ranges::find(rows, dim(0)) != rows.end()) return;
  auto axis = static_cast<std::size_t>(normalize_axis(op.axis, rows.size()));
  const dim extent = std::exchange(rows[axis], 1);
  scan_emitter emitter{e, e.code, op, input, compute_type(input.type().type), axis, rows, extent};
  dim count = 1;
  for (const dim& d : rows) count = count * d;
  const bool side_by_side = axis + 1 < rows.size() && rows.back() != 1;
  // An open number of rows counts as many: the rows of a workgroup would read single elements.
  if (side_by_side && known_bound(count) >= many_rows) emitter.emit_threads();
  else emitter.emit_workgroups(count);
}

}  // namespace kiln::gpu
