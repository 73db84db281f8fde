#include "mlir_bridge/gpu/attention/split_keys.hpp"

#include <algorithm>
#include <limits>

#include "mlir_bridge/gpu/contraction/chunk.hpp"

namespace kiln::gpu {

namespace {

namespace arith = mlir::arith;

constexpr std::int64_t together = 8;  // parts whose loads are on their way at once
constexpr double lowest = -std::numeric_limits<double>::infinity();

}  // namespace

split_keys::split_keys(kernel_emitter& e, const attention_problem& problem, std::int64_t parts)
    : e_(e), p_(problem), parts_(parts), results_(e.add_scratch(element_type::f32, {p_.n.batch, p_.n.key_heads, parts, p_.rows, p_.n.value_depth})),
      states_(e.add_scratch(element_type::f32, {p_.n.batch, p_.n.key_heads, parts, p_.rows, 2})) {}

std::int64_t split_keys::worthwhile(const kernel_emitter& e, const kernel_configuration& configuration, const attention_problem& problem, std::int64_t workgroups, std::int64_t key_block) {
  const std::int64_t blocks = ceil_div(problem.n.keys, key_block), most = std::clamp<std::int64_t>(blocks, 1, 64);
  // The second launch costs as much as some blocks, so few of them are not worth it.
  const std::int64_t units = e.target.gpu.compute_units;
  std::int64_t parts = blocks < 8 || 2 * workgroups > units ? 1 : std::min(ceil_div(2 * units, workgroups), ceil_div(blocks, 2));
  parts = choose(configuration, "key_parts", parts);
  return std::clamp<std::int64_t>(parts, 1, most);
}

Value split_keys::state_offset(const place& at) {
  code_builder& code = e_.code;
  return code.add(code.mul(code.add(code.mul(code.add(code.mul(at.batch, p_.n.key_heads), at.key_head), parts_), at.part), p_.rows), at.row);
}

void split_keys::store_state(const place& at, Value top, Value sum) {
  e_.code.store(e_.pointer(states_), e_.code.mul(state_offset(at), 2), element_type::f32, e_.code.from_lanes(std::array{top, sum}), 2);
}

void split_keys::store_result(const place& at, Value depth, std::span<const Value> elements) {
  code_builder& code = e_.code;
  Value offset = code.add(code.mul(state_offset(at), p_.n.value_depth), depth);
  const auto count = static_cast<std::int64_t>(elements.size());
  for (std::int64_t i = 0; i < count; i += 4)
    code.store(e_.pointer(results_), code.add(offset, i), element_type::f32, code.from_lanes(elements.subspan(static_cast<std::size_t>(i), 4)), 4);
}

void split_keys::join() {
  code_builder& code = e_.code;
  const element_type type = p_.query.type().type;
  constexpr std::int64_t lanes = 4;  // depths of a thread
  e_.parallel("join", {p_.n.batch, p_.n.key_heads, p_.rows, p_.n.value_depth / lanes}, std::numeric_limits<std::int32_t>::max(), [&](std::span<const Value> item) {
    Value results = e_.pointer(results_), states = e_.pointer(states_), depth = code.mul(item[3], lanes);
    mlir::Type f32 = code.builder.getF32Type();
    Value top = code.number(f32, lowest), sum = code.number(f32, 0), total = code.number(code.with_lanes(f32, lanes), 0);
    // An online softmax over some parts at a time; loads come first.
    auto meet = [&](Value first, std::int64_t count, std::span<const Value> so_far) {
      values found, elements;
      for (std::int64_t i = 0; i < count; ++i) {
        Value row = state_offset({item[0], item[1], code.add(first, i), item[2]});
        found.push_back(code.load(states, code.mul(row, 2), element_type::f32, 2, 2));
        elements.push_back(code.load(results, code.add(code.mul(row, p_.n.value_depth), depth), element_type::f32, lanes, 4));
      }
      auto larger = [&](Value a, Value b) -> Value { return code.make<arith::MaxNumFOp>(a, b); };
      Value next_top = so_far[0];
      for (Value f : found) next_top = larger(next_top, code.lane(f, 0));
      // Where no part has seen a key yet, nothing is subtracted: -inf - -inf is no number.
      Value shift = code.select(code.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, next_top, code.number(f32, lowest)), code.number(f32, 0), next_top);
      auto weight = [&](Value of) -> Value { return code.make<mlir::math::Exp2Op>(code.make<arith::SubFOp>(of, shift).getResult()); };
      Value old = weight(so_far[0]), next_sum = code.make<arith::MulFOp>(so_far[1], old), next_total = code.make<arith::MulFOp>(so_far[2], code.splat(old, lanes));
      for (std::size_t i = 0; i < found.size(); ++i) {
        Value w = weight(code.lane(found[i], 0));
        next_sum = code.fma(code.lane(found[i], 1), w, next_sum);
        next_total = code.fma(elements[i], code.splat(w, lanes), next_total);
      }
      return values{next_top, next_sum, next_total};
    };
    const std::int64_t whole = parts_ / together * together;
    values state{top, sum, total};
    state = code.loop(code.constant(0), code.constant(whole), together, state, [&](Value first, std::span<const Value> so_far) { return meet(first, together, so_far); });
    if (whole < parts_) state = meet(code.constant(whole), parts_ - whole, state);
    Value result = code.make<arith::DivFOp>(state[2], code.splat(state[1], lanes));
    evaluator ev(e_);
    ev.bind(e_.anchor_result(), code.to_compute(code.to_storage(result, type), type));
    auto place = p_.at(code, item[0], item[1]);
    ev.store_outputs(p_.of_output(code, place, item[2], depth, lanes, lanes), lanes);
  });
}

}  // namespace kiln::gpu
