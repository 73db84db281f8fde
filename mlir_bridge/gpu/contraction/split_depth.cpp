#include "mlir_bridge/gpu/contraction/split_depth.hpp"

#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/last_workgroup.hpp"

namespace kiln::gpu {

namespace {

// Sums are stored as vectors of four, or one by one; neighbouring threads write neighbouring vectors. Visits them: the
// first sum, how many sums, their lanes, the first register. Returns the number of registers.
using visitor = std::function<void(std::size_t, std::int64_t, std::int64_t, std::int64_t)>;
std::int64_t each(const values& sums, const visitor& visit) {
  std::int64_t first = 0;
  for (std::size_t i = 0; i < sums.size();) {
    const std::int64_t lanes = code_builder::lanes_of(sums[i]);
    const std::int64_t group_size = lanes == 1 && i + 4 <= sums.size() && sums.size() % 4 == 0 ? 4 : 1;
    visit(i, group_size, lanes, first);
    first += lanes * group_size;
    i += static_cast<std::size_t>(group_size);
  }
  return first;
}

}  // namespace

split_depth::split_depth(kernel_emitter& e, std::int64_t tiles, std::int64_t splits, std::int64_t threads,
                         std::int64_t registers, element_type sum)
    : e_(e),
      splits_(splits),
      threads_(threads),
      sum_(sum),
      partial_(e.add_scratch(sum, {tiles, splits, registers, threads})),
      counters_(e.add_zeroed_scratch(element_type::i32, {tiles})) {}

split_depth::split_depth(kernel_emitter& e, const dim& tiles, const dim& splits, std::int64_t most_tiles,
                         std::int64_t threads, std::int64_t registers, element_type sum)
    : e_(e),
      splits_(splits),
      threads_(threads),
      sum_(sum),
      // Nothing if the depth is not split.
      partial_(e.add_open_scratch(sum, {tiles * splits * dim::min(splits - 1, 1), registers, threads})),
      counters_(e.add_zeroed_scratch(element_type::i32, {most_tiles})) {}

Value split_depth::offset(const place& at, Value part, std::int64_t first, std::int64_t lanes) const {
  code_builder& code = e_.code;
  return code.add(code.add(at.of_tile, code.mul(part, at.registers * threads_)),
                  code.add(code.mul(at.group.thread(), lanes), first * threads_));
}

split_depth::place split_depth::store(workgroup& group, Value tile, Value split, const values& sums) {
  code_builder& code = e_.code;
  const std::int64_t registers = each(sums, [](std::size_t, std::int64_t, std::int64_t, std::int64_t) {});
  Value of_tile = e_.mul(tile, splits_ * registers * threads_);
  place at{group, e_.pointer(partial_), of_tile, registers};
  each(sums, [&](std::size_t i, std::int64_t count, std::int64_t lanes, std::int64_t first) {
    Value v = count == 1 ? sums[i] : code.from_lanes(std::span(sums).subspan(i, 4));
    if (lanes <= 4) return code.store(at.pointer, offset(at, split, first, lanes * count), sum_, v, 4);
    for (std::int64_t part = 0; part < lanes; part += 4)
      code.store(at.pointer, offset(at, split, first + part, 4), sum_, part_of(code, v, part, 4), 4);
  });
  return at;
}

values split_depth::add_up(const place& at, const values& sums) {
  code_builder& code = e_.code;
  values zeros;
  for (Value sum : sums) zeros.push_back(code.number(sum.getType(), 0));
  return code.loop(code.constant(0), e_.size(splits_), 1, zeros, [&](Value part, std::span<const Value> so_far) {
    values next(so_far.begin(), so_far.end());
    auto plus = [&](Value a, Value b) {
      return is_float(sum_) ? Value(code.make<mlir::arith::AddFOp>(a, b))
                            : code.make<mlir::arith::AddIOp>(a, b).getResult();
    };
    each(sums, [&](std::size_t i, std::int64_t count, std::int64_t lanes, std::int64_t first) {
      if (count == 4) {
        Value v = code.load(at.pointer, offset(at, part, first, 4), sum_, 4, 4);
        for (std::int64_t lane = 0; lane < 4; ++lane)
          next[i + static_cast<std::size_t>(lane)] = plus(next[i + static_cast<std::size_t>(lane)], code.lane(v, lane));
      } else if (lanes <= 4) {
        next[i] = plus(next[i], code.load(at.pointer, offset(at, part, first, lanes), sum_, lanes, 4));
      } else {
        values parts;
        for (std::int64_t piece = 0; piece < lanes; piece += 4)
          parts.push_back(code.load(at.pointer, offset(at, part, first + piece, 4), sum_, 4, 4));
        next[i] = plus(next[i], joined(code, parts));
      }
    });
    return next;
  });
}

void split_depth::combine(workgroup& group, Value tile, Value split, const values& sums, Value memory,
                          const std::function<void(const values&)>& finish) {
  const place at = store(group, tile, split, sums);
  when_last(e_, group, counters_, tile, splits_.value(), memory, [&] { finish(add_up(at, sums)); });
}

std::pair<values, Value> split_depth::combine_open(workgroup& group, Value tile, Value split, const values& sums,
                                                   Value memory) {
  code_builder& code = e_.code;
  const mlir::Type condition = code.builder.getI1Type();
  const auto with = [](values result, Value has_total) {
    result.push_back(has_total);
    return result;
  };
  values result = code.branch(
      code.less(code.constant(1), e_.size(splits_)),
      [&] {
        const place at = store(group, tile, split, sums);
        const Value arrived = code.to_index(count_workgroup(e_, group, counters_, tile, memory)),
                    last = code.equal(arrived, e_.size(splits_ - 1));
        return with(code.branch(
                        last,
                        [&] {
                          begin_as_last(e_, group, counters_, tile);
                          return add_up(at, sums);
                        },
                        [&] { return sums; }),
                    last);
      },
      [&] { return with(sums, code.integer(condition, 1)); });
  const Value has_total = result.back();
  result.pop_back();
  return {std::move(result), has_total};
}

}  // namespace kiln::gpu
