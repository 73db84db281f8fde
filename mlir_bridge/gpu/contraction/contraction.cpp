// Selects the generator of a contraction and prepares its operands.
#include "mlir_bridge/gpu/contraction/contraction.hpp"

#include "ir/ops/contraction.hpp"
#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/contraction/epilogue.hpp"
#include "mlir_bridge/gpu/contraction/gather.hpp"
#include "mlir_bridge/gpu/contraction/narrow.hpp"
#include "mlir_bridge/gpu/contraction/packing.hpp"
#include "mlir_bridge/gpu/contraction/problem.hpp"
#include "mlir_bridge/gpu/contraction/staged.hpp"

namespace kiln::gpu {

namespace {

// Writes the result of a contraction with depth 0: all sums are 0.
void emit_zeros(kernel_emitter& e, const contraction_problem& problem) {
  e.parallel_open("zeros", {problem.batch, problem.m, problem.n}, 1, [&](std::span<const Value> at) {
    result_writer writer(e, problem);
    writer.add(e.code.number(e.code.scalar_type(problem.types().sum), 0), at[0], at[1], at[2], false, false);
    writer.flush();
  });
}

}  // namespace

std::optional<buffer> pack_operand(kernel_emitter& e, contraction_problem& problem) {
  if (!problem.pack_b) return std::nullopt;
  return pack_b(e, problem, e.anchor()->op().is<dot>() ? e.anchor()->inputs()[1] : value{});
}

problem_size staged_size(kernel_emitter& e, const contraction_problem& problem) {
  const product_types types = problem.types();
  problem_size size{usual_size(problem.batch), usual_size(problem.m), usual_size(problem.n), usual_size(problem.k),
                    types};
  size.open = problem.is_open();
  size.known_depth = problem.k.is_static();
  size.a_piece = problem.a.along_rows ? 1 : problem.a.piece, size.b_piece = problem.b.along_rows ? 1 : problem.b.piece;
  if (e.target.gpu.async_copy)
    size.plain = is_plain(e, problem.a, types.factor) && is_plain(e, problem.b, types.factor);
  return size;
}

void emit_contraction(kernel_emitter& e, contraction_problem problem) {
  if (problem.batch * problem.m * problem.n == 0) return;
  if (problem.k == 0) return emit_zeros(e, problem);
  pack_operand(e, problem);
  if (try_narrow(e, problem)) return;
  emit_staged(e, problem, choose_tile(e.target, staged_size(e, problem), e.configuration));
}

bool emit_joined_contraction(kernel_emitter& e, contraction_problem problem) {
  if (problem.batch * problem.m * problem.n * problem.k == 0 || !joins_narrow(e, problem)) return false;
  if (problem.pack_b && problem.second) {
    contraction_problem other = problem;
    other.b = problem.second->b;
    pack_b(e, other, problem.second->result.producer->inputs()[1]);
    problem.second->b = other.b;
  }
  pack_operand(e, problem);
  return try_narrow(e, problem);
}

std::vector<candidate> contraction_space(kernel_emitter& e, contraction_problem problem) {
  if (problem.batch * problem.m * problem.n * problem.k == 0) return {};
  pack_operand(e, problem);
  std::vector<candidate> result = staged_space(e.target, staged_size(e, problem)), narrow = narrow_space(e, problem);
  // Few rows use the narrow generator unless the configuration selects another one.
  if (!narrow.empty())
    for (candidate& c : result) c.configuration["narrow"] = 0;
  result.insert(result.end(), narrow.begin(), narrow.end());
  return result;
}

}  // namespace kiln::gpu
