#include <limits>
#include <numbers>
#include <numeric>

#include "mlir_bridge/codegen/few_rows.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/gpu/contraction/problem.hpp"
#include "mlir_bridge/gpu/contraction/versions.hpp"
#include "mlir_bridge/gpu/empty_sums.hpp"
#include "mlir_bridge/kinds/attention/gpu/attention.hpp"
#include "mlir_bridge/kinds/attention/gpu/matrix_shape.hpp"
#include "mlir_bridge/kinds/attention/gpu/wgmma_attention.hpp"

namespace kiln::gpu {

namespace arith = mlir::arith;

namespace {

shape usual(const shape& type) {
  shape result = type;
  for (dim& size : result.dims) size = usual_size(size);
  return result;
}

}  // namespace

Value power_of_two(code_builder& code, Value x) { return code.on.function(code, "exp2.fast", std::span(&x, 1)); }

attention_problem::attention_problem(kernel_emitter& e)
    : emitter(e),
      op(*e.anchor()->op().get_if<attention>()),
      query(e.anchor()->inputs()[0]),
      key(e.anchor()->inputs()[1]),
      value_(e.anchor()->inputs()[2]),
      mask(e.anchor()->inputs().size() == 4 ? e.anchor()->inputs()[3] : value{}),
      n(op, usual(query.type()), usual(key.type()), usual(value_.type())),
      share(n.heads / n.key_heads),
      rows(share * n.queries) {
  const std::vector<dim>& sizes = kernel_emitter::sizes(query);
  batch_sizes.assign(sizes.begin(), sizes.end() - 3);
  heads = sizes[head_axes(op.query_layout, sizes.size()).head];
  if (!heads.is_static()) {
    n.batch *= n.heads;
    n.heads = n.key_heads = share = 1;
    rows = n.queries;
    batch_sizes.push_back(heads);
  }
  if (mask.producer && (limit = find_prefix_mask(mask))) mask = {};
  batch = std::accumulate(batch_sizes.begin(), batch_sizes.end(), dim(1), std::multiplies<>());
  queries = sizes[head_axes(op.query_layout, sizes.size()).position];
  keys = kernel_emitter::sizes(key)[head_axes(op.key_layout, sizes.size()).position];
  all_rows = queries * share;
}

namespace {

workgroup opened(kernel_emitter& e, const attention_problem& p, const dim& tiles, std::int64_t threads,
                 const dim& used) {
  if (p.is_open()) return workgroup(e, "attention", tiles * p.n.key_heads * p.batch * used, threads);
  return workgroup(e, "attention", {tiles.value(), p.n.key_heads, p.n.batch}, threads);
}

}  // namespace

attention_group::attention_group(kernel_emitter& e, const attention_problem& problem, const dim& tiles,
                                 std::int64_t threads, const dim& used)
    : group(opened(e, problem, tiles, threads, used)),
      tile(group.block(0)),
      key_head(group.block(1)),
      batch(group.block(2)) {
  if (!problem.is_open()) return;
  const values digits = e.delinearize(group.block(), std::vector<dim>{problem.batch, problem.n.key_heads, tiles});
  batch = digits[0], key_head = digits[1], tile = digits[2];
}

attention_problem::place attention_problem::at(code_builder&, Value of_batch, Value key_head) const {
  values digits = emitter.delinearize(of_batch, batch_sizes);
  if (heads.is_static()) return {std::move(digits), key_head};
  key_head = digits.back();
  digits.pop_back();
  return {std::move(digits), key_head};
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
  return of_head(layout, p, head_of(code, p, row), query_of(code, row), depth, lanes, multiple);
}

Value attention_problem::head_of(code_builder& code, const place& p, Value row) const {
  return share == 1 ? p.key_head : code.add(code.mul(p.key_head, share), emitter.div(row, queries));
}

Value attention_problem::end_of_row(code_builder& code, const place& p, Value row) const {
  return end_of_query(code, p, head_of(code, p, row), query_of(code, row));
}

Value attention_problem::end_of_query(code_builder& code, const place& p, Value head, Value query_number) const {
  Value end = emitter.size(keys);
  if (op.causal) end = emitter.min(emitter.add(query_number, keys - queries + 1), keys);
  if (!limit) return end;
  evaluator ev(emitter);
  const position where = of_scores(limit->limit, p, head, query_number, {code.constant(0), 0, {}, 0, 1, any_multiple});
  Value seen = ev.at(limit->limit, where, 1);
  // The number may have more bits than an index.
  seen = convert_element(code, seen, limit->limit.type().type, element_type::i64);
  seen =
      limit->inclusive ? code.add(emitter.min(code.max(seen, -1), keys - 1), 1) : emitter.min(code.max(seen, 0), keys);
  return code.min(end, code.to_index(seen));
}

std::array<Value, 2> attention_problem::ends_of_rows(workgroup& group, const place& p, Value first,
                                                     std::int64_t count) const {
  code_builder& code = emitter.code;
  std::array<Value, 2> ends;
  const std::int64_t wave = emitter.target.gpu.wave;
  for (std::int64_t begin = 0; begin < count; begin += wave) {
    const Value number = code.min(code.add(group.lane(), begin), count - 1);
    const Value end = code.max(end_of_row(code, p, emitter.min(code.add(first, number), all_rows - 1)), 0);
    ends[0] = ends[0] ? code.min(ends[0], end) : end;
    ends[1] = ends[1] ? code.max(ends[1], end) : end;
  }
  ends[0] = group.uniform(group.reduce_wave(ends[0], [&](Value a, Value b) { return code.min(a, b); }));
  ends[1] = group.uniform(group.reduce_wave(ends[1], [&](Value a, Value b) { return code.max(a, b); }));
  return ends;
}

position attention_problem::of_scores(value v, const place& p, Value head, Value query_number,
                                      const axis_index& key_index) const {
  // numpy's broadcasting from the right: [..., head, query, key]. Axes of extent 1 always use index 0.
  const std::vector<dim>& sizes = kernel_emitter::sizes(v);
  position all;
  for (Value b : p.batch) all.push_back({b, 0, {}});
  all.push_back({head, 0, {}});
  all.push_back({query_number, 0, {}});
  all.push_back(key_index);
  std::vector<dim> full(batch_sizes.begin(), batch_sizes.begin() + static_cast<std::ptrdiff_t>(p.batch.size()));
  full.insert(full.end(), {heads, queries, keys});
  const auto skipped = static_cast<std::ptrdiff_t>(full.size() - sizes.size());
  position where(all.begin() + skipped, all.end());
  full.erase(full.begin(), full.begin() + skipped);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1) where[i] = {emitter.code.constant(0), 0, {}, 0, 1, any_multiple};
    // An open axis of the mask may be 1 at run time.
    else if (sizes[i] != full[i]) where[i] = {emitter.min(where[i].base, sizes[i] - 1), 0, {}};
  }
  return where;
}

Value attention_problem::masked_score(kernel_emitter& e, const place& p, Value row, Value j, Value product,
                                      std::int64_t multiple, bool scaled) const {
  code_builder& code = e.code;
  const std::int64_t lanes = code_builder::lanes_of(product);
  Value score = product;
  if (scaled) score = code.make<arith::MulFOp>(product, code.number(product.getType(), score_factor()));
  if (!mask.producer) return score;
  const position where = of_scores(mask, p, head_of(code, p, row), query_of(code, row),
                                   {j, lanes > 1 ? 1 : 0, {}, 0, known_bound(keys), multiple});
  evaluator ev(e);
  Value m = ev.at(mask, where, lanes);
  if (mask.type().type == element_type::boolean)
    return code.select(m, score, code.number(score.getType(), -std::numeric_limits<double>::infinity()));
  m = convert_element(code, m, mask.type().type, element_type::f32);
  // Numbers of f16 are so small that the scaled ones are finite, too.
  if (mask.type().type == element_type::f16) return code.fma(m, code.number(m.getType(), std::numbers::log2e), score);
  // In a row that exporters mask with the lowest number, all scores are equal. As a power of 2 that number would be
  // -inf.
  const Value lowest = code.number(m.getType(), std::numeric_limits<float>::lowest()),
              finite = code.make<arith::MulFOp>(m, code.number(m.getType(), std::numbers::log2e)),
              hidden = code.make<arith::CmpFOp>(arith::CmpFPredicate::OLT, m, lowest);
  return code.make<arith::AddFOp>(score,
                                  code.select(hidden, m, code.make<arith::MaxNumFOp>(finite, lowest).getResult()));
}

double attention_problem::score_factor() const { return op.scale * std::numbers::log2e; }

bool attention_problem::scales_weights() const {
  return emitter.target.family == target_family::amdgpu && !mask.producer && op.scale > 0;
}

values attention_problem::scores(kernel_emitter& e, const place& p, Value row, Value row_end, Value j,
                                 const values& products, bool masked, bool scaled) const {
  code_builder& code = e.code;
  const auto run = static_cast<std::int64_t>(products.size());
  values result;
  if (masked || !mask.producer || !divides(run, keys) || kernel_emitter::sizes(mask).back() != keys) {
    for (std::int64_t i = 0; i < run; ++i) {
      Value at_key = code.add(j, i), v = masked_score(e, p, row, masked ? e.min(at_key, keys - 1) : at_key,
                                                      products[static_cast<std::size_t>(i)], 1, scaled);
      result.push_back(masked ? code.select(code.less(at_key, row_end), v,
                                            code.number(v.getType(), -std::numeric_limits<double>::infinity()))
                              : v);
    }
    return result;
  }
  Value all = masked_score(e, p, row, j, code.from_lanes(products), run, scaled);
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
  e.emit_inner_anchors();
  attention_problem problem(e);
  if (problem.n.batch * problem.n.heads * problem.n.queries * problem.n.value_depth == 0) return {};
  std::vector<candidate> result = wgmma_attention_space(e, problem), narrow = narrow_attention_space(e, problem),
                         others = matrix_attention_space(e, problem);
  if (others.empty()) others = vector_attention_space(e, problem);
  if (!narrow.empty()) {
    for (candidate& c : others) c.configuration["narrow"] = 0;
    others.insert(others.end(), narrow.begin(), narrow.end());
  }
  // If both generators are possible, the names in the configuration decide, because equal names mean different things.
  if (!result.empty())
    for (candidate& c : others) c.configuration["wgmma"] = 0;
  result.insert(result.end(), others.begin(), others.end());
  return result;
}

bool opens_attention(const instruction& anchor) {
  const auto& op = *anchor.op().get_if<attention>();
  const shape &query = anchor.inputs()[0].type(), &key = anchor.inputs()[1].type(), &v = anchor.inputs()[2].type();
  const dim &heads = query.dims[head_axes(op.query_layout, query.rank()).head],
            &key_heads = key.dims[head_axes(op.key_layout, key.rank()).head];
  const bool divided = heads.is_static() && key_heads.is_static();
  return (divided || heads == key_heads) && query.dims.back().is_static() && v.dims.back().is_static() &&
         compute_type(query.type) == element_type::f32;
}

namespace {

// Returns 1 at the sizes at which the stages for few queries are used, else 0. These are two launches, the first of
// which divides the keys among workgroups. That is worth it with many keys, also for more queries if a workgroup for
// each tile of rows would leave most of the GPU idle. It is not with few keys, which matrix instructions process for
// all rows at once.
dim sizes_of_few_queries(const kernel_emitter& e, const attention_problem& p) {
  constexpr std::int64_t few_keys = 128, many_keys = 512, most_rows = 1024,
                         any = std::numeric_limits<std::int64_t>::max();
  const dim few = is_few(p.queries);
  if (!choose_matrix_shape(e, p, e.configuration)) return few;
  if (p.queries == p.keys) return 0;
  const dim of_few = few * rows_between(p.keys, few_keys, any),
            idle =
                rows_between(p.batch * p.n.key_heads * p.all_rows, 0, most_rows) * rows_between(p.keys, many_keys, any);
  return of_few + idle - of_few * idle;
}

}  // namespace

void emit_open_attention(kernel_emitter& e) {
  e.emit_inner_anchors();
  attention_problem problem(e);
  if (emit_open_narrow_attention(e, problem)) return;
  if (problem.is_open() && emit_open_wgmma_attention(e, problem)) return;
  const dim few = problem.is_open() ? sizes_of_few_queries(e, problem) : dim(0), many = 1 - few;
  emit_with_empty_sums(e, problem.keys, [&] {
    if (!(many == dim(0)) && !emit_matrix_attention(e, problem, many)) emit_vector_attention(e, problem, many);
    if (!(few == dim(0))) emit_few_queries(problem, few);
  });
}

void emit_attention(kernel_emitter& e) {
  attention_problem problem(e);
  const bool is_empty = problem.n.batch * problem.n.heads * problem.n.queries * problem.n.value_depth == 0;
  // Attention of few rows takes inner anchors.
  if (!is_empty && e.inner_anchors().size() > 0 && emit_narrow_attention(e, problem)) return;
  e.emit_inner_anchors();
  if (is_empty) return;
  if (emit_wgmma_attention(e, problem) || emit_narrow_attention(e, problem)) return;
  if (!emit_matrix_attention(e, problem)) emit_vector_attention(e, problem);
}

}  // namespace kiln::gpu
