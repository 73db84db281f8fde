// Attention on the vector unit. One wave computes one row; its lanes are keys for the scores and depths for the result.
// Used for types without matrix instructions, depths that are not a multiple of 8, and few rows.
#include <algorithm>
#include <limits>

#include "ir/error.hpp"
#include "mlir_bridge/gpu/matrix_product.hpp"
#include "mlir_bridge/kinds/attention/gpu/wave_row.hpp"

namespace kiln::gpu {

namespace {

namespace arith = mlir::arith;
constexpr double lowest = -std::numeric_limits<double>::infinity();
constexpr std::int64_t most_waves = 16;

}  // namespace

std::vector<candidate> vector_attention_space(kernel_emitter& e, const attention_problem& p) {
  std::vector<candidate> result;
  for (std::int64_t waves : {1, 2, 4, 8, 16}) {
    // Waves of a workgroup read the same keys. More waves mean fewer reads from memory, as long as every compute unit
    // has a workgroup.
    const std::int64_t groups = (p.rows + waves - 1) / waves * p.n.key_heads * p.n.batch,
                       rounds = (groups + e.target.gpu.compute_units - 1) / e.target.gpu.compute_units;
    if (waves <= p.rows)
      result.push_back({{{"waves", waves}}, static_cast<double>(rounds) * (8 + static_cast<double>(waves))});
  }
  return result;
}

wave_row attend(const attention_problem& p, workgroup& group, const attention_problem::place& at, Value row, Value low,
                Value high, Value weights) {
  kernel_emitter& e = p.emitter;
  code_builder& code = e.code;
  const std::int64_t wave = e.target.gpu.wave, per_lane = depths_of_lane(p);
  const std::int64_t steps = p.n.depth % 4 == 0 ? 4 : 1;  // depths per step
  const Value row_end = code.min(code.max(p.end_of_row(code, at, row), 0), high);
  mlir::Type f32 = code.builder.getF32Type();
  const Value none = code.number(f32, lowest), zero = code.number(f32, 0);
  values state{none, zero};
  state.resize(static_cast<std::size_t>(2 + per_lane), zero);
  state = code.loop(low, row_end, wave, state, [&](Value first_key, std::span<const Value> carried) {
    Value j = code.add(first_key, group.lane()), in_range = code.less(j, row_end), key = e.min(j, p.keys - 1);
    Value product = code.loop(0, p.n.depth, steps, {code.number(code.type(element_type::f32, steps), 0)},
                              [&](Value depth, std::span<const Value> sum) {
                                evaluator ev(e);
                                Value q = ev.at(p.query, p.of_query(code, at, row, depth, steps, steps), steps),
                                      k = ev.at(p.key, p.of_key(at, key, depth, steps, steps), steps);
                                return values{code.fma(q, k, sum[0])};
                              })[0];
    product = code.horizontal(mlir::vector::CombiningKind::ADD, product);
    Value score = code.select(in_range, p.masked_score(e, at, row, key, product, 1), none);
    const auto larger = [&](Value a, Value b) { return code.make<arith::MaxNumFOp>(a, b).getResult(); };
    Value top = larger(carried[0], group.reduce_wave(score, larger)), shift = shift_of(code, top);
    Value weight = power(code, score, shift), factor = power(code, carried[0], shift);
    code.store(weights, group.lane(), element_type::f32, weight);
    wave_barrier(code, e.target.family);
    values next{top, code.make<arith::AddFOp>(code.make<arith::MulFOp>(carried[1], factor).getResult(), weight)};
    values sums;
    for (std::int64_t i = 0; i < per_lane; ++i)
      sums.push_back(code.make<arith::MulFOp>(carried[static_cast<std::size_t>(2 + i)], factor));
    // All lanes process all keys of the wave.
    Value count = code.min(code.sub(row_end, first_key), wave);
    sums = code.loop(code.constant(0), count, 1, sums, [&](Value k, std::span<const Value> so_far) {
      Value w = code.load(weights, k, element_type::f32, 1);
      values result;
      evaluator ev(e);
      for (std::int64_t i = 0; i < per_lane; ++i) {
        Value depth = code.min(code.add(group.lane(), i * wave), p.n.value_depth - 1);
        result.push_back(code.fma(w, ev.at(p.value_, p.of_value(at, code.add(first_key, k), depth, 1, 1), 1),
                                  so_far[static_cast<std::size_t>(i)]));
      }
      return result;
    });
    wave_barrier(code, e.target.family);
    next.insert(next.end(), sums.begin(), sums.end());
    return next;
  });
  const auto plus = [&](Value a, Value b) { return code.make<arith::AddFOp>(a, b).getResult(); };
  return {state[0], group.reduce_wave(state[1], plus), values(state.begin() + 2, state.end())};
}

Value shift_of(code_builder& code, Value top) {
  return code.select(
      code.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, top, code.number(code.builder.getF32Type(), lowest)),
      code.number(code.builder.getF32Type(), 0), top);
}

Value power(code_builder& code, Value a, Value b) { return power_of_two(code, code.make<arith::SubFOp>(a, b)); }

std::int64_t depths_of_lane(const attention_problem& p) {
  const std::int64_t wave = p.emitter.target.gpu.wave;
  return (p.n.value_depth + wave - 1) / wave;
}

void store_row(const attention_problem& p, const workgroup& group, const attention_problem::place& at, Value row,
               Value is_valid, const wave_row& found) {
  kernel_emitter& e = p.emitter;
  code_builder& code = e.code;
  const element_type type = p.query.type().type;
  const Value inverse = code.make<arith::DivFOp>(code.number(code.builder.getF32Type(), 1), found.sum);
  for (std::size_t i = 0; i < found.results.size(); ++i) {
    Value depth = code.add(group.lane(), static_cast<std::int64_t>(i) * e.target.gpu.wave);
    Value valid = code.make<arith::AndIOp>(is_valid, code.less(depth, code.constant(p.n.value_depth)));
    code.when(valid, [&] {
      evaluator ev(e);
      Value result = code.make<arith::MulFOp>(found.results[i], inverse);
      ev.bind(e.anchor_result(), code.to_compute(code.to_storage(result, type), type));
      ev.store_outputs(p.of_output(code, at, row, depth, 1, 1), 1);
    });
  }
}

void emit_vector_attention(kernel_emitter& e, const attention_problem& p, const dim& used) {
  code_builder& code = e.code;
  const element_type type = p.query.type().type;
  if (compute_type(type) != element_type::f32)
    throw error(error_kind::unsupported,
                "target '" + e.target.name + "' has no attention of " + std::string(name(type)) + " elements");
  const std::int64_t wave = e.target.gpu.wave, waves = std::clamp<std::int64_t>(choose(e.configuration, "waves", 4), 1,
                                                                                std::min(most_waves, p.rows));
  attention_group place(e, p, (p.all_rows + waves - 1) / waves, waves * wave, used);
  workgroup& group = place.group;
  auto at = p.at(code, place.batch, place.key_head);
  Value weights = code.address(group.lds(waves * wave * 4), code.mul(group.wave(), wave), element_type::f32);
  Value row_number = code.add(code.mul(place.tile, waves), group.wave());
  Value row = e.min(row_number, p.all_rows - 1);
  const wave_row found = attend(p, group, at, row, code.constant(0), e.size(p.keys), weights);
  store_row(p, group, at, row, code.less(row_number, e.size(p.all_rows)), found);
  group.close();
}

}  // namespace kiln::gpu
