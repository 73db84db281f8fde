#include "mlir_bridge/gpu/contraction/split_depth.hpp"

#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/last_workgroup.hpp"

namespace kiln::gpu {

split_depth::split_depth(kernel_emitter& e, std::int64_t tiles, std::int64_t splits, std::int64_t threads,
                         std::int64_t registers, element_type sum)
    : e_(e),
      splits_(splits),
      threads_(threads),
      sum_(sum),
      partial_(e.add_scratch(sum, {tiles, splits, registers, threads})),
      counters_(e.add_zeroed_scratch(element_type::i32, {tiles})) {}

void split_depth::combine(workgroup& group, Value tile, Value split, const values& sums, Value memory,
                          const std::function<void(const values&)>& finish) {
  code_builder& code = e_.code;
  // Store sums as vectors of four, or one by one. Neighbouring threads write neighbouring vectors.
  std::vector<values> vectors;
  std::int64_t registers = 0;
  auto each = [&](const auto& visit) {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < sums.size();) {
      const std::int64_t lanes = code_builder::lanes_of(sums[i]);
      const std::int64_t group_size = lanes == 1 && i + 4 <= sums.size() && sums.size() % 4 == 0 ? 4 : 1;
      visit(i, group_size, lanes, first);
      first += lanes * group_size;
      i += static_cast<std::size_t>(group_size);
    }
    registers = first;
  };
  each([](std::size_t, std::int64_t, std::int64_t, std::int64_t) {});
  Value of_tile = code.mul(tile, splits_ * registers * threads_);
  auto offset = [&](Value part, std::int64_t first, std::int64_t lanes) {
    return code.add(code.add(of_tile, code.mul(part, registers * threads_)),
                    code.add(code.mul(group.thread(), lanes), first * threads_));
  };
  Value pointer = e_.pointer(partial_);
  each([&](std::size_t i, std::int64_t count, std::int64_t lanes, std::int64_t first) {
    Value v = count == 1 ? sums[i] : code.from_lanes(std::span(sums).subspan(i, 4));
    if (lanes <= 4) return code.store(pointer, offset(split, first, lanes * count), sum_, v, 4);
    for (std::int64_t part = 0; part < lanes; part += 4)
      code.store(pointer, offset(split, first + part, 4), sum_, part_of(code, v, part, 4), 4);
  });

  when_last(e_, group, counters_, tile, splits_, memory, [&] {
    values zeros;
    for (Value sum : sums) zeros.push_back(code.number(sum.getType(), 0));
    values total = code.loop(0, splits_, 1, zeros, [&](Value part, std::span<const Value> so_far) {
      values next(so_far.begin(), so_far.end());
      auto plus = [&](Value a, Value b) {
        return is_float(sum_) ? Value(code.make<mlir::arith::AddFOp>(a, b))
                              : code.make<mlir::arith::AddIOp>(a, b).getResult();
      };
      each([&](std::size_t i, std::int64_t count, std::int64_t lanes, std::int64_t first) {
        if (count == 4) {
          Value v = code.load(pointer, offset(part, first, 4), sum_, 4, 4);
          for (std::int64_t lane = 0; lane < 4; ++lane)
            next[i + static_cast<std::size_t>(lane)] =
                plus(next[i + static_cast<std::size_t>(lane)], code.lane(v, lane));
        } else if (lanes <= 4) {
          next[i] = plus(next[i], code.load(pointer, offset(part, first, lanes), sum_, lanes, 4));
        } else {
          values parts;
          for (std::int64_t piece = 0; piece < lanes; piece += 4)
            parts.push_back(code.load(pointer, offset(part, first + piece, 4), sum_, 4, 4));
          next[i] = plus(next[i], joined(code, parts));
        }
      });
      return next;
    });
    finish(total);
  });
}

}  // namespace kiln::gpu
