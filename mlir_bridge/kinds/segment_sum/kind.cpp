// segment_sum: each element of the output finds the rows of its segment with two binary searches and adds them in
// order, so elements are independent and results deterministic. One generator serves all targets and open sizes,
// because it only uses kernel_emitter::parallel_open.
#include "ir/ops/segment_sum.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/cpu/choices.hpp"
#include "mlir_bridge/kinds/kind.hpp"

namespace kiln::kinds {
namespace {

using namespace codegen;

// Assumed for an open number of rows, for sizing work items.
constexpr std::int64_t usual_rows = 256;

// Returns how many of the ascending ids are smaller than `bound` (i64).
Value count_below(kernel_emitter& e, const buffer& ids, Value bound) {
  code_builder& code = e.code;
  const dim& rows = ids.sizes[0];
  // The number of guesses is that of the binary digits of `rows`.
  Value guesses, largest_step;
  if (rows.is_static()) {
    const auto known = static_cast<std::uint64_t>(rows.value());
    guesses = code.constant(std::bit_width(known));
    largest_step = code.constant(static_cast<std::int64_t>(std::bit_floor(known)));
  } else {
    const Value zeros = code.make<mlir::math::CountLeadingZerosOp>(e.size(rows));
    guesses = code.sub(code.constant(code.on.index_bits), zeros);
    largest_step = code.make<mlir::arith::ShLIOp>(code.constant(1), code.sub(guesses, 1));
  }
  Value pointer = e.pointer(ids);
  // The state is the number of ids known to be smaller, and the step to the next guess, which is halved each time.
  values start{code.constant(0), largest_step};
  auto guess = [&](Value, std::span<const Value> state) {
    Value last = code.sub(code.add(state[0], state[1]), 1);
    Value id =
        convert_element(code, code.load(pointer, e.min(last, rows - 1), ids.type, 1), ids.type, element_type::i64);
    Value smaller = code.make<mlir::arith::AndIOp>(code.less(last, e.size(rows)), code.less(id, bound));
    return values{code.select(smaller, code.add(last, 1), state[0]), code.div(state[1], 2)};
  };
  return code.loop(code.constant(0), guesses, 1, start, guess)[0];
}

void emit_segment_sum(kernel_emitter& e) {
  code_builder& code = e.code;
  value data = e.anchor()->inputs()[0];
  const element_type type = data.type().type;
  const std::vector<dim>& sizes = kernel_emitter::sizes(e.anchor_result());
  const dim rows = kernel_emitter::sizes(data)[0], segments = sizes[0];
  if (std::ranges::find(sizes, dim(0)) != sizes.end()) return;
  const bool any = rows != dim(0);
  buffer ids = any ? e.materialize(e.anchor()->inputs()[1]) : buffer{};
  // Vectors along the last axis must divide it. If rows are scalars, there are none.
  const std::int64_t factor = known_factor(sizes.back());
  const std::int64_t lanes = sizes.size() == 1 ? 1 : std::gcd(e.lanes_for(type, factor), factor);
  std::vector<dim> grid = sizes;
  if (lanes > 1) grid.back() = grid.back() / lanes;
  const std::int64_t usual = rows.is_static() ? rows.value() : usual_rows;
  const std::int64_t cost =
      (usual / segments.value() + 1) * lanes + 4 * std::bit_width(static_cast<std::uint64_t>(usual));
  e.parallel_open("segment_sum", grid, cost, [&](std::span<const Value> at) {
    position where;
    for (std::size_t i = 0; i < sizes.size(); ++i) where.push_back({at[i], 0, {}, 0, known_bound(sizes[i]), 1});
    if (lanes > 1) where.back() = {code.mul(at.back(), lanes), 1, {}, 0, known_bound(sizes.back()), lanes};
    Value total = code.number(code.type(type, lanes), 0);
    if (any) {
      Value segment = convert_element(code, at[0], code.index_element(), element_type::i64);
      Value first = count_below(e, ids, segment), end = count_below(e, ids, code.add(segment, 1));
      total = code.loop(first, end, 1, {total}, [&](Value row, std::span<const Value> sum) {
        position from = where;
        from[0] = {row, 0, {}, 0, known_bound(rows), 1};
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
       .cpu = {.emit = emit_segment_sum, .space = cpu::grain_choices, .emit_open = emit_segment_sum},
       .gpu = {.emit = emit_segment_sum, .emit_open = emit_segment_sum}},
  };
  return rows;
}

}  // namespace kiln::kinds
