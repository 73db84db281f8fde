// segment_sum: each element of the output finds the rows of its segment with two binary searches and adds them in
// order, so elements are independent and results deterministic. One generator serves all targets, because it only uses
// kernel_emitter::parallel.
#include "ir/ops/segment_sum.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/cpu/choices.hpp"
#include "mlir_bridge/kinds/kind.hpp"

namespace kiln::kinds {
namespace {

using namespace codegen;

// Returns how many of the ascending ids are smaller than `bound` (i64).
Value count_below(kernel_emitter& e, const buffer& ids, Value bound) {
  code_builder& code = e.code;
  const std::int64_t rows = ids.dims()[0];
  const auto largest_step = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(rows)));
  Value pointer = e.pointer(ids);
  // The state is the number of ids known to be smaller, and the step to the next guess, which is halved each time.
  values start{code.constant(0), code.constant(largest_step)};
  auto guess = [&](Value, std::span<const Value> state) {
    Value last = code.sub(code.add(state[0], state[1]), 1);
    Value id =
        convert_element(code, code.load(pointer, code.min(last, rows - 1), ids.type, 1), ids.type, element_type::i64);
    Value smaller = code.make<mlir::arith::AndIOp>(code.less(last, code.constant(rows)), code.less(id, bound));
    return values{code.select(smaller, code.add(last, 1), state[0]), code.div(state[1], 2)};
  };
  return code.loop(0, std::bit_width(static_cast<std::uint64_t>(largest_step)), 1, start, guess)[0];
}

void emit_segment_sum(kernel_emitter& e) {
  code_builder& code = e.code;
  value data = e.anchor()->inputs()[0];
  const element_type type = data.type().type;
  const auto dims = kernel_emitter::dims(e.anchor_result());
  const std::int64_t rows = kernel_emitter::dims(data)[0];
  if (std::ranges::find(dims, 0) != dims.end()) return;
  buffer ids = rows == 0 ? buffer{} : e.materialize(e.anchor()->inputs()[1]);
  // Vectors along the last axis must divide it. If rows are scalars, there are none.
  std::int64_t lanes = dims.size() == 1 ? 1 : std::gcd(e.lanes_for(type, dims.back()), dims.back());
  std::vector<std::int64_t> grid = dims;
  if (lanes > 1) grid.back() /= lanes;
  const std::int64_t cost = (rows / dims[0] + 1) * lanes + 4 * std::bit_width(static_cast<std::uint64_t>(rows));
  e.parallel("segment_sum", grid, cost, [&](std::span<const Value> at) {
    position where;
    for (std::size_t i = 0; i < dims.size(); ++i) where.push_back({at[i], 0, {}, 0, dims[i], 1});
    if (lanes > 1) where.back() = {code.mul(at.back(), lanes), 1, {}, 0, dims.back(), lanes};
    Value total = code.number(code.type(type, lanes), 0);
    if (rows > 0) {
      Value segment = convert_element(code, at[0], code.index_element(), element_type::i64);
      Value first = count_below(e, ids, segment), end = count_below(e, ids, code.add(segment, 1));
      total = code.loop(first, end, 1, {total}, [&](Value row, std::span<const Value> sum) {
        position from = where;
        from[0] = {row, 0, {}, 0, rows, 1};
        evaluator ev(e);
        std::array<Value, 2> operands{sum[0], ev.at(data, from, lanes)};
        return values{apply(code, scalar_function::add, type, operands)};
      })[0];
    }
    evaluator epilogue(e);
    epilogue.bind(e.anchor_result(), total);
    epilogue.store_outputs(where, lanes);
  });
}

}  // namespace

std::span<const kernel_kind> segment_sum_kinds() {
  static constexpr kernel_kind rows[]{
      {.operation = "segment_sum",
       .epilogue = true,
       .operand_reads = {1, 0, 0},
       .cpu = {.emit = emit_segment_sum, .space = cpu::grain_choices},
       .gpu = {.emit = emit_segment_sum}},
  };
  return rows;
}

}  // namespace kiln::kinds
