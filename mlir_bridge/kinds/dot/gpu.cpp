// Expresses dot and batched dot as contraction problems.
#include <algorithm>
#include <functional>
#include <numeric>

#include "ir/ops/contraction.hpp"
#include "mlir_bridge/codegen/access.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/gpu/aligned_sizes.hpp"
#include "mlir_bridge/gpu/contraction/chunk.hpp"
#include "mlir_bridge/gpu/contraction/joined_product.hpp"
#include "mlir_bridge/gpu/contraction/matrix_operand.hpp"
#include "mlir_bridge/gpu/contraction/problem.hpp"
#include "mlir_bridge/gpu/empty_sums.hpp"
#include "mlir_bridge/gpu/open_product.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma.hpp"
#include "mlir_bridge/kinds/dot/generators.hpp"

namespace kiln::gpu {

namespace {

// With more rows than this, packed weights are unpacked to memory once, because matrix units need them there.
constexpr std::int64_t most_unpacked_rows = 128;

contraction_problem dot_problem(kernel_emitter& e, value a) {
  const dot& op = *e.anchor()->op().get_if<dot>();
  const value b = e.anchor()->inputs()[1];
  const std::vector<dim>&a_sizes = kernel_emitter::sizes(a), &out = kernel_emitter::sizes(e.anchor_result());
  const std::size_t rank = out.size();
  const std::vector<dim> batch_sizes(out.begin(), out.end() - 2);

  contraction_problem p;
  p.batch = std::accumulate(batch_sizes.begin(), batch_sizes.end(), dim(1), std::multiplies<>());
  p.m = out[rank - 2], p.n = out[rank - 1], p.k = a_sizes[op.transpose_a ? rank - 2 : rank - 1];
  p.last_axis = p.n;
  const element_type factor = types_of(a.type().type, b.type().type).factor;
  p.a = matrix_operand(e, a, factor, {batch_sizes, p.m, p.k, op.transpose_a});
  p.b = matrix_operand(e, b, factor, {batch_sizes, p.n, p.k, !op.transpose_b});
  if (op.transpose_b) p.b.packed = find_packed_weights(e, b);
  p.locate = [&e, batch_sizes, m = known_bound(p.m), n = known_bound(p.n)](code_builder&, Value batch, Value row,
                                                                           Value column, std::int64_t lanes) {
    position where;
    values digits = e.delinearize(batch, batch_sizes);
    for (std::size_t i = 0; i < digits.size(); ++i)
      where.push_back(axis_at(digits[i], 0, known_bound(batch_sizes[i]), 1));
    where.push_back(axis_at(row, 0, m, 1));
    where.push_back(axis_at(column, 0, n, lanes, lanes > 1 ? 1 : 0));
    return where;
  };
  // Weights whose rows are scattered or unaligned are rearranged once.
  if (p.batch == 1 && b.type().is_static() && e.only_parameters(b) &&
      (p.b.along_rows || p.b.piece < elements_of_chunk(factor)))
    p.pack_b = p.b_constant = true;
  return p;
}

contraction_problem dot_problem(kernel_emitter& e) { return dot_problem(e, e.anchor()->inputs()[0]); }

// The extents of the innermost axes of the factors and the result, from which vectors are loaded and stored.
std::vector<dim> innermost_sizes(const kernel_emitter& e) {
  std::vector<dim> result;
  for (value v : {e.anchor()->inputs()[0], e.anchor()->inputs()[1], e.anchor_result()})
    result.push_back(kernel_emitter::sizes(v).back());
  return result;
}

// Returns how many elements are loaded at once.
std::int64_t aligned_elements(const kernel_emitter& e) {
  const element_type a = e.anchor()->inputs()[0].type().type, b = e.anchor()->inputs()[1].type().type;
  return std::max<std::int64_t>(1, elements_of_chunk(types_of(a, b).factor));
}

// Emits the normalization of many rows, and then both products of them in one launch. Returns false where that is not
// possible; then the products are not emitted.
bool emit_two_products(kernel_emitter& e) {
  if (!has_wgmma(e)) return false;
  std::vector<inner_anchor> anchors = e.inner_anchors();
  e.set_inner_anchors({anchors.front()});
  e.emit_inner_anchors();
  anchors.erase(anchors.begin());
  e.set_inner_anchors(std::move(anchors));
  const auto joined = find_joined_product(e);
  return joined && try_wgmma_dot(e, &*joined);
}

// Emits the product together with the inner anchors, or returns false and does not emit it.
bool emit_joined_dot(kernel_emitter& e) {
  const auto joined = find_joined_product(e);
  if (!joined) return false;
  if (try_wgmma_dot(e, &*joined)) return true;
  contraction_problem problem = dot_problem(e, joined->rows);
  problem.epsilon = joined->epsilon;
  if (joined->second) {
    const value weights = joined->second->inputs()[1];
    const bool depth_first = !joined->second->op().get_if<dot>()->transpose_b;
    problem.second = {matrix_operand(e, weights, problem.types().factor, {{}, problem.n, problem.k, depth_first}),
                      {const_cast<instruction*>(joined->second), 0}};
    if (!depth_first) problem.second->b.packed = find_packed_weights(e, weights);
    if (problem.second->b.along_rows != problem.b.along_rows || problem.second->b.piece != problem.b.piece ||
        e.only_parameters(weights) != e.only_parameters(e.anchor()->inputs()[1]))
      return false;
  }
  return emit_joined_contraction(e, problem) || (joined->second && joined->epsilon && emit_two_products(e));
}

}  // namespace

void emit_dot(kernel_emitter& e) {
  if (emit_joined_dot(e)) return;
  e.emit_inner_anchors();
  const std::vector<std::int64_t> out = e.dims(e.anchor_result());
  if (out[out.size() - 2] > most_unpacked_rows) e.materialize(e.anchor()->inputs()[1]);
  if (!try_wgmma_dot(e)) emit_contraction(e, dot_problem(e));
}

void emit_open_dot(kernel_emitter& e) {
  e.emit_inner_anchors();
  const std::vector<dim>& of_a = kernel_emitter::sizes(e.anchor()->inputs()[0]);
  const dim depth = of_a[of_a.size() - (e.anchor()->op().get_if<dot>()->transpose_a ? 2 : 1)];
  emit_with_empty_sums(e, depth, [&] {
    const std::vector<dim>& out = kernel_emitter::sizes(e.anchor_result());
    if (usual_size(out[out.size() - 2]) > most_unpacked_rows) e.materialize(e.anchor()->inputs()[1]);
    emit_with_aligned_sizes(e, aligned_elements(e), innermost_sizes(e), large_sizes(dot_problem(e)), [&] {
      emit_open_product(e, dot_problem(e), [](kernel_emitter& of, const dim_bindings& sample) {
        return find_dot_problem(of, nullptr, sample);
      });
    });
  });
}

std::vector<candidate> dot_space(kernel_emitter& e) {
  e.emit_inner_anchors();
  std::vector<candidate> result = wgmma_space(e), others = contraction_space(e, dot_problem(e));
  result.insert(result.end(), others.begin(), others.end());
  return result;
}

}  // namespace kiln::gpu
