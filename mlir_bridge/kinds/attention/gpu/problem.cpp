#include <numbers>

#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/kinds/attention/gpu/attention.hpp"
#include "mlir_bridge/kinds/attention/gpu/wgmma_attention.hpp"

namespace kiln::gpu {

namespace arith = mlir::arith;

attention_problem::attention_problem(kernel_emitter& e)
    : op(*e.anchor()->op().get_if<attention>()),
      query(e.anchor()->inputs()[0]),
      key(e.anchor()->inputs()[1]),
      value_(e.anchor()->inputs()[2]),
      mask(e.anchor()->inputs().size() == 4 ? e.anchor()->inputs()[3] : value{}),
      n(op, query.type(), key.type(), value_.type()),
      share(n.heads / n.key_heads),
      rows(share * n.queries) {
  auto dims = kernel_emitter::dims(query);
  batch_dims.assign(dims.begin(), dims.end() - 3);
}

attention_problem::place attention_problem::at(code_builder& code, Value batch, Value key_head) const {
  return {code.delinearize(batch, batch_dims), key_head};
}

position attention_problem::of_head(head_layout layout, const place& p, Value head, Value j, Value depth,
                                    std::int64_t lanes, std::int64_t multiple) const {
  position where;
  for (Value b : p.batch) where.push_back({b, 0, {}});
  axis_index heads{head, 0, {}}, positions{j, 0, {}};
  where.push_back(layout == head_layout::heads_first ? heads : positions);
  where.push_back(layout == head_layout::heads_first ? positions : heads);
  where.push_back({depth, lanes > 1 ? 1 : 0, {}, 0, INT64_MAX, multiple});
  return where;
}

position attention_problem::of_row(code_builder& code, head_layout layout, const place& p, Value row, Value depth,
                                   std::int64_t lanes, std::int64_t multiple) const {
  Value head = share == 1 ? p.key_head : code.add(code.mul(p.key_head, share), code.div(row, n.queries));
  return of_head(layout, p, head, query_of(code, row), depth, lanes, multiple);
}

Value attention_problem::end_of_row(code_builder& code, Value row) const {
  if (!op.causal) return code.constant(n.keys);
  return code.min(code.add(query_of(code, row), n.keys - n.queries + 1), n.keys);
}

Value attention_problem::masked_score(kernel_emitter& e, const place& p, Value row, Value j, Value product,
                                      std::int64_t multiple) const {
  code_builder& code = e.code;
  const std::int64_t lanes = code_builder::lanes_of(product);
  Value score = code.make<arith::MulFOp>(product, code.number(product.getType(), op.scale * std::numbers::log2e));
  if (!mask.producer) return score;
  // numpy's rule from the right: [..., head, query, key], axes of extent 1 stand still.
  auto dims = kernel_emitter::dims(mask);
  Value head = share == 1 ? p.key_head : code.add(code.mul(p.key_head, share), code.div(row, n.queries));
  position all;
  for (Value b : p.batch) all.push_back({b, 0, {}});
  all.push_back({head, 0, {}});
  all.push_back({query_of(code, row), 0, {}});
  all.push_back({j, lanes > 1 ? 1 : 0, {}, 0, n.keys, multiple});
  position where(all.end() - static_cast<std::ptrdiff_t>(dims.size()), all.end());
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] == 1) where[i] = {code.constant(0), 0, {}, 0, 1, any_multiple};
  evaluator ev(e);
  Value m = ev.at(mask, where, lanes);
  if (mask.type().type == element_type::boolean)
    return code.select(m, score, code.number(score.getType(), -std::numeric_limits<double>::infinity()));
  m = convert_element(code, m, mask.type().type, element_type::f32);
  return code.make<arith::AddFOp>(
      score, code.make<arith::MulFOp>(m, code.number(m.getType(), std::numbers::log2e)).getResult());
}

values attention_problem::scores(kernel_emitter& e, const place& p, Value row, Value row_end, Value j,
                                 const values& products, bool masked) const {
  code_builder& code = e.code;
  const auto run = static_cast<std::int64_t>(products.size());
  values result;
  if (masked || !mask.producer || n.keys % run) {
    for (std::int64_t i = 0; i < run; ++i) {
      Value at_key = code.add(j, i), v = masked_score(e, p, row, masked ? code.min(at_key, n.keys - 1) : at_key,
                                                      products[static_cast<std::size_t>(i)], 1);
      result.push_back(masked ? code.select(code.less(at_key, row_end), v,
                                            code.number(v.getType(), -std::numeric_limits<double>::infinity()))
                              : v);
    }
    return result;
  }
  Value all = masked_score(e, p, row, j, code.from_lanes(products), run);
  for (std::int64_t i = 0; i < run; ++i) result.push_back(code.lane(all, i));
  return result;
}

const matrix_instruction* attention_instruction(const kernel_emitter& e, element_type type) {
  if (type != element_type::f16 && type != element_type::bf16) return nullptr;
  for (const matrix_instruction* unit : find_matrix_instructions(e.target.gpu.matrix, type, false))
    if (unit->m == 16) return unit;
  return nullptr;
}

std::vector<candidate> attention_space(kernel_emitter& e) {
  attention_problem problem(e);
  if (problem.n.batch * problem.n.heads * problem.n.queries * problem.n.value_depth == 0) return {};
  std::vector<candidate> result = wgmma_attention_space(e, problem), narrow = narrow_attention_space(e, problem),
                         others = matrix_attention_space(e, problem);
  if (others.empty()) others = vector_attention_space(e, problem);
  if (!narrow.empty()) {
    for (candidate& c : others) c.configuration["narrow"] = 0;
    others.insert(others.end(), narrow.begin(), narrow.end());
  }
  // Where both can be, the name says which: their other names mean different things.
  if (!result.empty())
    for (candidate& c : others) c.configuration["wgmma"] = 0;
  result.insert(result.end(), others.begin(), others.end());
  return result;
}

void emit_attention(kernel_emitter& e) {
  attention_problem problem(e);
  if (problem.n.batch * problem.n.heads * problem.n.queries * problem.n.value_depth == 0) return;
  if (emit_wgmma_attention(e, problem) || emit_narrow_attention(e, problem)) return;
  if (!emit_matrix_attention(e, problem)) emit_vector_attention(e, problem);
}

}  // namespace kiln::gpu
