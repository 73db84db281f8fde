// top_k with a heap of the k best elements so far (its root is the worst of them), which is sorted in place at the end.
// O(n log k) in the worst case; most elements take one comparison, a vector at a time. The heap holds keys: integers
// whose order is that of the results, made of an element's value and its index.
#include <bit>
#include <optional>
#include <utility>

#include "ir/ops/all.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/kinds/top_k/generators.hpp"

namespace kiln::cpu {

namespace {

namespace arith = mlir::arith;

// Assumed extent of an open axis, for sizing work items.
constexpr std::int64_t usual_extent = 128;

// Keys of elements of one type: the order of the value in the upper half, the complement of the index in the lower one,
// so that of equal values the first is ahead. The larger key is ahead.
struct key_format {
  code_builder& code;
  element_type type;
  bool largest;
  // Bits of each half: 32, or 64 for values of 64 bits or axes of 2^32 and more elements.
  unsigned half;

  mlir::Type halves(std::int64_t lanes = 1) const {
    return code_builder::with_lanes(code.builder.getIntegerType(half), lanes);
  }
  mlir::Type key() const { return code.builder.getIntegerType(2 * half); }
  Value not_of(Value v) const { return code.make<arith::XOrIOp>(v, code.integer(v.getType(), -1)); }
  static Value compare(code_builder& b, arith::CmpIPredicate how, Value x, Value y) {
    return b.make<arith::CmpIOp>(how, x, y);
  }

  // An unsigned integer of `half` bits for each value, the larger ahead. NaN is greater than every number.
  Value order(Value x) const {
    const mlir::Type wide = halves(code_builder::lanes_of(x));
    Value result = is_float(type) ? order_of_float(x) : order_of_integer(x);
    if (result.getType() != wide) result = code.make<arith::ExtUIOp>(wide, result);
    return largest ? result : not_of(result);
  }
  Value of(Value x, Value index) const {
    Value low =
        code_builder::lanes_of(x) == 1 && half == 64 ? index : code.make<arith::TruncIOp>(halves(), index).getResult();
    Value high = code.make<arith::ExtUIOp>(key(), order(x));
    high = code.make<arith::ShLIOp>(high, code.integer(key(), half));
    return code.make<arith::OrIOp>(high, code.make<arith::ExtUIOp>(key(), not_of(low)).getResult());
  }
  Value order_in(Value k) const {
    return code.make<arith::TruncIOp>(halves(), code.make<arith::ShRUIOp>(k, code.integer(key(), half)).getResult());
  }
  Value index_in(Value k) const {
    Value low = not_of(code.make<arith::TruncIOp>(halves(), k));
    return half == 64 ? low : code.make<arith::ExtUIOp>(code.index_type(), low).getResult();
  }
  Value ahead(Value a, Value b) const { return compare(code, arith::CmpIPredicate::ugt, a, b); }

 private:
  // The bits of a positive float grow with it, those of a negative one fall. -0 equals 0.
  Value order_of_float(Value x) const {
    const unsigned width = code_builder::scalar_of(x).getIntOrFloatBitWidth();
    mlir::Type integers = code_builder::with_lanes(code.builder.getIntegerType(width), code_builder::lanes_of(x));
    const Value zero = code.integer(integers, 0),
                sign = code.make<arith::ShLIOp>(code.integer(integers, 1), code.integer(integers, width - 1));
    Value bits = code.make<arith::BitcastOp>(integers, x);
    bits = code.select(compare(code, arith::CmpIPredicate::eq, bits, sign), zero, bits);
    Value result = code.select(compare(code, arith::CmpIPredicate::slt, bits, zero), not_of(bits),
                               code.make<arith::OrIOp>(bits, sign));
    Value nan = code.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x);
    return code.select(nan, code.integer(integers, -1), result);
  }
  Value order_of_integer(Value x) const {
    if (!is_signed_integer(type)) return x;
    const unsigned width = code_builder::scalar_of(x).getIntOrFloatBitWidth();
    return code.make<arith::XOrIOp>(
        x, code.make<arith::ShLIOp>(code.integer(x.getType(), 1), code.integer(x.getType(), width - 1)).getResult());
  }
};

// The keys of one row, contiguous in scratch from `base` on.
struct heap {
  code_builder& code;
  const key_format& format;
  Value pointer, base;

  std::int64_t words() const { return format.half / 32; }
  Value load(Value i) const {
    Value at = code.add(base, code.mul(i, words()));
    Value low = code.load(pointer, at, element_type::i64, 1);
    if (words() == 1) return low;
    Value high = code.make<arith::ExtUIOp>(format.key(), code.load(pointer, code.add(at, 1), element_type::i64, 1));
    high = code.make<arith::ShLIOp>(high, code.integer(format.key(), 64));
    return code.make<arith::OrIOp>(high, code.make<arith::ExtUIOp>(format.key(), low).getResult());
  }
  void store(Value i, Value k) const {
    Value at = code.add(base, code.mul(i, words()));
    if (words() == 1) return code.store(pointer, at, element_type::i64, k);
    mlir::Type i64 = code.builder.getI64Type();
    code.store(pointer, at, element_type::i64, code.make<arith::TruncIOp>(i64, k));
    Value high = code.make<arith::ShRUIOp>(k, code.integer(format.key(), 64));
    code.store(pointer, code.add(at, 1), element_type::i64, code.make<arith::TruncIOp>(i64, high));
  }

  // Puts `k` where the entry `root` was and moves it down until no child is worse. The heap is the first `size` of at
  // most `most` entries.
  void sift_down(Value k, Value root, Value size, std::int64_t most) const {
    std::int64_t depth = std::bit_width(static_cast<std::uint64_t>(most));
    values last = code.loop(0, depth, 1, {root}, [&](Value, std::span<const Value> state) {
      Value place = state[0];
      Value left = code.add(code.mul(place, 2), 1), right = code.add(left, 1);
      return code.branch(
          code.less(left, size),
          [&] {
            // If there is no right child, use the left one.
            Value other = code.select(code.less(right, size), right, left);
            Value left_key = load(left), other_key = load(other);
            Value take_other = format.ahead(left_key, other_key);
            Value child = code.select(take_other, other, left),
                  child_key = code.select(take_other, other_key, left_key);
            return code.branch(
                format.ahead(k, child_key),
                [&] {
                  store(place, child_key);
                  return values{child};
                },
                [&] { return values{place}; });
          },
          [&] { return values{place}; });
    });
    store(last[0], k);
  }
};

std::optional<buffer> result_buffer(kernel_emitter& e, std::uint32_t index) {
  for (std::size_t i = 0; i < e.outputs().size(); ++i)
    if (e.outputs()[i] == e.anchor_result(index)) return e.output(i);
  return std::nullopt;
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
  if (k == 0) return;
  // An open axis is shorter than 2^32 (open_checks.hpp).
  const bool wide = storage_bits(type) == 64 || (extent.is_static() && extent.value() >= (std::int64_t{1} << 32));
  const key_format format{code, type, op.largest, wide ? 64U : 32U};
  std::vector<dim> of_keys = rows;
  of_keys.push_back(k * (wide ? 2 : 1));
  const buffer keys = e.add_open_scratch(element_type::i64, of_keys);
  // Elements are compared one by one; they are computed faster in vectors, along their own axes.
  value computed = input;
  while (computed.producer->op().is<reshape>()) computed = computed.producer->inputs()[0];
  e.materialize(computed);
  const std::int64_t known_extent = extent.is_static() ? extent.value() : usual_extent;
  // Elements that are looked at together; one by one where they are not neighbours.
  const std::int64_t lanes =
      axis + 1 == rows.size() ? e.lanes_for(type, std::max<std::int64_t>(1, known_extent - k)) : 1;
  e.parallel_open("top_k", rows, known_extent * 4, [&](std::span<const Value> at) {
    auto base_of = [&](const buffer& b) {
      const std::vector<dim> strides = b.strides();
      Value base = code.constant(0);
      for (std::size_t i = 0; i < rows.size(); ++i) base = code.add(base, e.mul(at[i], strides[i]));
      return base;
    };
    const heap best{code, format, e.pointer(keys), base_of(keys)};
    const Value zero = code.constant(0), count = code.constant(k), end = e.size(extent);
    auto elements = [&](Value i, std::int64_t n) {
      values where(at.begin(), at.end());
      where[axis] = i;
      return evaluator(e).element(input, where, n);
    };
    auto key = [&](Value i) { return format.of(elements(i, 1), i); };
    code.loop(0, k, 1, [&](Value i) { best.store(i, key(i)); });
    code.loop(0, k / 2, 1, [&](Value i) {
      Value root = code.sub(code.constant(k / 2 - 1), i);
      best.sift_down(best.load(root), root, count, k);
    });
    auto insert = [&](Value i) {
      Value candidate = key(i);
      code.when(format.ahead(candidate, best.load(zero)), [&] { best.sift_down(candidate, zero, count, k); });
    };
    code.loop(count, end, lanes, [&](Value first) {
      if (lanes == 1) return insert(first);
      // A later element equal to the root is not inserted, because it comes after the root.
      Value next = code.add(first, lanes);
      values some = code.branch(
          code.less(end, next), [&] { return values{code.integer(code.builder.getI1Type(), 1)}; },
          [&] {
            Value worst = code.splat(format.order_in(best.load(zero)), lanes);
            Value better = format.ahead(format.order(elements(first, lanes)), worst);
            return values{code.horizontal(mlir::vector::CombiningKind::OR, better)};
          });
      code.when(some[0], [&] { code.loop(first, code.min(next, end), 1, insert); });
    });
    code.loop(1, k, 1, [&](Value i) {
      Value last = code.sub(count, i), worst = best.load(zero), moved = best.load(last);
      best.store(last, worst);
      best.sift_down(moved, zero, last, k);
    });
    const std::optional<buffer> found = result_buffer(e, 0), indices = result_buffer(e, 1);
    code.loop(0, k, 1, [&](Value i) {
      Value index = format.index_in(best.load(i));
      auto place = [&](const buffer& b) { return code.add(base_of(b), e.mul(i, b.strides()[axis])); };
      if (found) code.store(e.pointer(*found), place(*found), type, elements(index, 1));
      if (indices) code.store(e.pointer(*indices), place(*indices), element_type::i64, index);
    });
  });
}

}  // namespace kiln::cpu
