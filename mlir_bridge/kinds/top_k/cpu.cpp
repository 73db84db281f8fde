// top_k with a heap of the k best elements so far (its root is the worst of them), which is sorted in place at the end.
// O(n log k) in the worst case; most elements take one comparison. The heap is stored in the outputs, or in scratch for
// an output that is not used.
#include <array>
#include <bit>
#include <utility>

#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"
#include "mlir_bridge/kinds/top_k/generators.hpp"

namespace kiln::cpu {

namespace {

namespace arith = mlir::arith;

// Assumed extent of an open axis, for sizing work items.
constexpr std::int64_t usual_extent = 128;

// One row of the two results: `k` entries that are `stride` elements apart.
struct heap {
  kernel_emitter& e;
  code_builder& code;
  element_type type;
  bool largest;
  Value values_pointer, indices_pointer, base;
  dim stride;

  Value offset(Value i) const { return code.add(base, e.mul(i, stride)); }
  Value load_value(Value i) const { return code.load(values_pointer, offset(i), type, 1); }
  Value load_index(Value i) const { return code.load(indices_pointer, offset(i), element_type::i64, 1); }
  void store(Value i, Value v, Value index) const {
    code.store(values_pointer, offset(i), type, v);
    code.store(indices_pointer, offset(i), element_type::i64, index);
  }

  // NaN compares greater than every number.
  Value above(Value a, Value b) const {
    if (!is_float(type)) {
      element_type compared = type == element_type::boolean ? element_type::u8 : type;
      std::array<Value, 2> pair{convert_element(code, a, type, compared), convert_element(code, b, type, compared)};
      return apply(code, scalar_function::greater, compared, pair);
    }
    Value greater = code.make<arith::CmpFOp>(arith::CmpFPredicate::OGT, a, b);
    Value nan_a = code.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, a, a),
          number_b = code.make<arith::CmpFOp>(arith::CmpFPredicate::ORD, b, b);
    return code.make<arith::OrIOp>(greater, code.make<arith::AndIOp>(nan_a, number_b).getResult());
  }
  Value better_value(Value a, Value b) const { return largest ? above(a, b) : above(b, a); }
  // Returns true if a comes strictly before b in the result: by value, then by index.
  Value ahead(Value a, Value a_index, Value b, Value b_index) const {
    Value first = better_value(a, b), second = better_value(b, a);
    Value tied = code.make<arith::XOrIOp>(second, code.integer(second.getType(), 1));
    return code.make<arith::OrIOp>(first, code.make<arith::AndIOp>(tied, code.less(a_index, b_index)).getResult());
  }

  // Moves the entry at `root` down until no child is worse. The heap is the first `size` of at most `k` entries.
  void sift_down(Value root, Value size, std::int64_t k) const {
    std::int64_t depth = std::bit_width(static_cast<std::uint64_t>(k));
    Value v = load_value(root), index = load_index(root);
    values last = code.loop(0, depth, 1, {root}, [&](Value, std::span<const Value> state) {
      Value place = state[0];
      Value left = code.add(code.mul(place, 2), 1), right = code.add(left, 1);
      return code.branch(
          code.less(left, size),
          [&] {
            // If there is no right child, use the left one.
            Value other = code.select(code.less(right, size), right, left);
            Value left_value = load_value(left), left_index = load_index(left), other_value = load_value(other),
                  other_index = load_index(other);
            Value take_other = ahead(left_value, left_index, other_value, other_index);
            Value child = code.select(take_other, other, left);
            Value child_value = code.select(take_other, other_value, left_value),
                  child_index = code.select(take_other, other_index, left_index);
            return code.branch(
                ahead(v, index, child_value, child_index),
                [&] {
                  store(place, child_value, child_index);
                  return values{child};
                },
                [&] { return values{place}; });
          },
          [&] { return values{place}; });
    });
    store(last[0], v, index);
  }
};

buffer result_buffer(kernel_emitter& e, std::uint32_t index) {
  for (std::size_t i = 0; i < e.outputs().size(); ++i)
    if (e.outputs()[i] == e.anchor_result(index)) return e.output(i);
  value v = e.anchor_result(index);
  return e.add_open_scratch(v.type().type, kernel_emitter::sizes(v));
}

}  // namespace

void emit_top_k(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<top_k>();
  auto& code = e.code;
  value input = e.anchor()->inputs()[0];
  element_type type = input.type().type;
  std::vector<dim> rows = kernel_emitter::sizes(input);
  auto axis = static_cast<std::size_t>(normalize_axis(op.axis, rows.size()));
  const dim extent = std::exchange(rows[axis], 1);
  const std::int64_t k = op.k;
  buffer best = result_buffer(e, 0), indices = result_buffer(e, 1);
  if (k == 0) return;
  // Elements are compared one by one; they are computed faster in vectors, along their own axes.
  value computed = input;
  while (computed.producer->op().is<reshape>()) computed = computed.producer->inputs()[0];
  e.materialize(computed);
  e.parallel_open(
      "top_k", rows, (extent.is_static() ? extent.value() : usual_extent) * 4, [&](std::span<const Value> at) {
        const std::vector<dim> strides = best.strides();
        Value base = code.constant(0);
        for (std::size_t i = 0; i < rows.size(); ++i) base = code.add(base, e.mul(at[i], strides[i]));
        heap h{e, code, type, op.largest, e.pointer(best), e.pointer(indices), base, strides[axis]};
        auto element = [&](Value i) {
          values where(at.begin(), at.end());
          where[axis] = i;
          evaluator ev(e);
          return ev.element(input, where);
        };
        code.loop(0, k, 1, [&](Value i) { h.store(i, element(i), i); });
        code.loop(0, k / 2, 1,
                  [&](Value i) { h.sift_down(code.sub(code.constant(k / 2 - 1), i), code.constant(k), k); });
        code.loop(code.constant(k), e.size(extent), 1, [&](Value i) {
          Value x = element(i), zero = code.constant(0);
          // A later element equal to the root is not inserted, because it comes after the root.
          code.when(h.better_value(x, h.load_value(zero)), [&] {
            h.store(zero, x, i);
            h.sift_down(zero, code.constant(k), k);
          });
        });
        code.loop(1, k, 1, [&](Value i) {
          Value last = code.sub(code.constant(k), i), zero = code.constant(0);
          Value worst = h.load_value(zero), worst_index = h.load_index(zero), moved = h.load_value(last),
                moved_index = h.load_index(last);
          h.store(last, worst, worst_index);
          h.store(zero, moved, moved_index);
          h.sift_down(zero, last, k);
        });
      });
}

}  // namespace kiln::cpu
