// Products of few rows of open number with weights [depth, columns]. A lane computes four columns of all rows, and the
// waves of a workgroup divide the depth: what counts is that many loads of weights are under way. The waves add their
// sums up in shared memory.
#include "mlir_bridge/kinds/dot/gpu/few_rows.hpp"

#include "ir/ops/contraction.hpp"
#include "mlir_bridge/codegen/few_rows.hpp"
#include "mlir_bridge/gpu/contraction/epilogue.hpp"
#include "mlir_bridge/gpu/workgroup.hpp"

namespace kiln::gpu {

namespace {

constexpr std::int64_t rows = most_few_rows, lanes = 4;
constexpr std::int64_t threads = 512;

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
  const std::int64_t wave = e.target.gpu.wave, waves = threads / wave, columns = wave * lanes;
  const std::int64_t depth = problem.k.value(), width = problem.n.value();
  const std::int64_t at_once = depth % (2 * lanes) == 0 ? 2 * lanes : lanes;  // of the depth
  workgroup group(e, "few_rows", (problem.n + columns - 1) / columns * is_few(problem.m), threads);
  const Value sums = group.lds(waves * rows * columns * 4);
  const Value column = code.add(code.mul(group.block(), columns), code.mul(group.lane(), lanes));
  const Value readable = code.min(column, width - lanes);
  values row_begins;
  for (std::int64_t r = 0; r < rows; ++r) row_begins.push_back(code.mul(e.min(code.constant(r), problem.m - 1), depth));
  const values zeros(static_cast<std::size_t>(rows), code.number(code.type(element_type::f32, lanes), 0));
  const values found = code.loop(
      code.mul(group.wave(), at_once), code.constant(depth), waves * at_once, zeros,
      [&](Value k, std::span<const Value> so_far) {
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
  const auto place_of = [&](Value of_wave, Value row, Value lane) {
    return code.add(code.mul(code.add(code.mul(of_wave, rows), row), columns), code.mul(lane, lanes));
  };
  for (std::int64_t r = 0; r < rows; ++r)
    code.store(sums, place_of(group.wave(), code.constant(r), group.lane()), element_type::f32,
               found[static_cast<std::size_t>(r)], lanes);
  group.barrier();
  // Each of the first waves adds up a row.
  code.when(code.less(group.wave(), code.constant(rows)), [&] {
    Value total = zeros[0];
    for (std::int64_t w = 0; w < waves; ++w)
      total = code.make<mlir::arith::AddFOp>(
          total,
          code.load(sums, place_of(code.constant(w), group.wave(), group.lane()), element_type::f32, lanes, lanes));
    result_writer writer(e, problem);
    writer.add(total, code.constant(0), group.wave(), column, true, width % columns != 0);
    writer.flush();
  });
  group.close();
}

}  // namespace kiln::gpu
