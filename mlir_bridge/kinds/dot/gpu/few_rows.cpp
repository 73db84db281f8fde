// Products of few rows of open number with weights [depth, columns]. A lane computes four columns of all rows, and the
// waves of a workgroup divide the depth, as do the lanes of a wave where there are few columns: what counts is that
// many loads of weights are under way on many compute units. Lanes exchange their sums, waves add theirs up in shared
// memory.
#include "mlir_bridge/kinds/dot/gpu/few_rows.hpp"

#include "ir/ops/contraction.hpp"
#include "mlir_bridge/codegen/few_rows.hpp"
#include "mlir_bridge/gpu/contraction/epilogue.hpp"
#include "mlir_bridge/gpu/workgroup.hpp"

namespace kiln::gpu {

namespace {

constexpr std::int64_t rows = most_few_rows, lanes = 4;
constexpr std::int64_t threads = 512;
// Lanes side by side that read a whole sector of 16-bit weights.
constexpr std::int64_t fewest_lanes = 8;

// The number of lanes of a wave that lie along the columns: fewer where the workgroups would leave compute units idle.
std::int64_t lanes_along_columns(const gpu_row& on, std::int64_t width) {
  std::int64_t count = on.wave;
  while (count > fewest_lanes && width / (count * lanes) < on.compute_units) count /= 2;
  return count;
}

}  // namespace

bool reads_few_rows(const kernel_emitter& e) {
  const dot& op = *e.anchor()->op().get_if<dot>();
  const value a = e.anchor()->inputs()[0], b = e.anchor()->inputs()[1];
  const std::vector<dim>&left = kernel_emitter::sizes(a), &right = kernel_emitter::sizes(b);
  const auto is_wide = [](value v) {
    return compute_type(v.type().type) == element_type::f32 && storage_bits(v.type().type) >= 16;
  };
  return !op.transpose_a && !op.transpose_b && left.size() == 2 && right.size() == 2 && !left[0].is_static() &&
         right[0].is_static() && right[1].is_static() && right[0].value() > 0 && right[0].value() % lanes == 0 &&
         right[1].value() > 0 && right[1].value() % lanes == 0 && is_wide(a) && is_wide(b) && e.in_memory(a) &&
         e.in_memory(b) && op.type != element_type::f64;
}

void emit_few_rows(kernel_emitter& e, const contraction_problem& problem) {
  code_builder& code = e.code;
  const buffer left = *e.in_memory(e.anchor()->inputs()[0]), right = *e.in_memory(e.anchor()->inputs()[1]);
  const std::int64_t depth = problem.k.value(), width = problem.n.value();
  const std::int64_t wave = e.target.gpu.wave, waves = threads / wave;
  const std::int64_t across = lanes_along_columns(e.target.gpu, width), columns = across * lanes, parts = wave / across;
  const std::int64_t at_once = depth % (2 * lanes) == 0 ? 2 * lanes : lanes;  // of the depth
  workgroup group(e, "few_rows", (problem.n + columns - 1) / columns * is_few(problem.m), threads);
  const Value sums = group.lds(waves * rows * columns * 4);
  const Value part = code.div(group.lane(), across), place = code.rem(group.lane(), across);  // in depth, in columns
  const Value column = code.add(code.mul(group.block(), columns), code.mul(place, lanes));
  const Value readable = code.min(column, width - lanes);
  values row_begins;
  for (std::int64_t r = 0; r < rows; ++r) row_begins.push_back(code.mul(e.min(code.constant(r), problem.m - 1), depth));
  const values zeros(static_cast<std::size_t>(rows), code.number(code.type(element_type::f32, lanes), 0));
  values found = code.loop(
      code.mul(code.add(code.mul(group.wave(), parts), part), at_once), code.constant(depth), waves * parts * at_once,
      zeros, [&](Value k, std::span<const Value> so_far) {
        values weights, result(so_far.begin(), so_far.end());
        for (std::int64_t i = 0; i < at_once; ++i)
          weights.push_back(code.load(e.pointer(right), code.add(code.mul(code.add(k, i), width), readable), right.type,
                                      lanes, lanes));
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t i = 0; i < at_once; i += lanes) {
            const Value begin = code.add(code.add(row_begins[static_cast<std::size_t>(r)], k), i);
            const Value factors = code.load(e.pointer(left), begin, left.type, lanes, lanes);
            Value& sum = result[static_cast<std::size_t>(r)];
            for (std::int64_t j = 0; j < lanes; ++j)
              sum = code.fma(code.splat(code.lane(factors, j), lanes), weights[static_cast<std::size_t>(i + j)], sum);
          }
        return result;
      });
  for (Value& sum : found)
    for (std::int64_t distance = across; distance < wave; distance *= 2) {
      values total;
      for (std::int64_t j = 0; j < lanes; ++j) {
        const Value own = code.lane(sum, j);
        total.push_back(code.make<mlir::arith::AddFOp>(own, group.shuffle_xor(own, distance)));
      }
      sum = code.from_lanes(total);
    }
  const auto place_of = [&](Value of_wave, Value row) {
    return code.add(code.mul(code.add(code.mul(of_wave, rows), row), columns), code.mul(place, lanes));
  };
  const Value first = code.equal(part, code.constant(0));
  code.when(first, [&] {
    for (std::int64_t r = 0; r < rows; ++r)
      code.store(sums, place_of(group.wave(), code.constant(r)), element_type::f32, found[static_cast<std::size_t>(r)],
                 lanes);
  });
  group.barrier();
  // Each of the first waves adds up a row.
  code.when(code.make<mlir::arith::AndIOp>(first, code.less(group.wave(), code.constant(rows))), [&] {
    Value total = zeros[0];
    for (std::int64_t w = 0; w < waves; ++w)
      total = code.make<mlir::arith::AddFOp>(
          total, code.load(sums, place_of(code.constant(w), group.wave()), element_type::f32, lanes, lanes));
    result_writer writer(e, problem);
    writer.add(total, code.constant(0), group.wave(), column, true, width % columns != 0);
    writer.flush();
  });
  group.close();
}

}  // namespace kiln::gpu
