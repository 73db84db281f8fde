// reduce: sums, means, products and extremes over any axes, and arg_reduce along one.
#include <algorithm>
#include <array>
#include <limits>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "mlir_bridge/cpu/anchors.hpp"
#include "mlir_bridge/cpu/reduction_space.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"

namespace kiln::cpu {

namespace {

namespace arith = mlir::arith;
using mlir::vector::CombiningKind;

// What a reduction does with elements of one type. Means of integers add in 64 bits.
struct rule {
  reduction_kind kind;
  element_type type;         // of the accumulator
  bool floating() const { return is_float(type); }

  double neutral() const {
    bool largest = kind == reduction_kind::max;
    if (kind == reduction_kind::product) return 1;
    if (kind == reduction_kind::sum || kind == reduction_kind::mean) return 0;
    return largest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }
  Value start(code_builder& b, std::int64_t lanes) const {
    mlir::Type t = b.type(type, lanes);
    if (floating() || kind == reduction_kind::product || kind == reduction_kind::sum || kind == reduction_kind::mean) return b.number(t, neutral());
    // The smallest or largest integer (or bool).
    int bits = type == element_type::boolean ? 1 : storage_bits(type);
    bool is_signed = is_signed_integer(type);
    std::uint64_t ones = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    std::uint64_t low = is_signed ? ~(ones >> 1) & ones : 0, high = is_signed ? ones >> 1 : ones;
    return b.integer(t, static_cast<std::int64_t>(kind == reduction_kind::max ? low : high));
  }
  Value combine(code_builder& b, Value a, Value c) const {
    switch (kind) {
      case reduction_kind::sum:
      case reduction_kind::mean: return floating() ? b.make<arith::AddFOp>(a, c).getResult() : type == element_type::boolean ? b.make<arith::OrIOp>(a, c).getResult() : b.make<arith::AddIOp>(a, c).getResult();
      case reduction_kind::product: return floating() ? b.make<arith::MulFOp>(a, c).getResult() : b.make<arith::MulIOp>(a, c).getResult();
      case reduction_kind::max: return larger(b, type, a, c);
      default: return smaller(b, type, a, c);
    }
  }
  CombiningKind combining() const {
    switch (kind) {
      case reduction_kind::sum:
      case reduction_kind::mean: return type == element_type::boolean ? CombiningKind::OR : CombiningKind::ADD;
      case reduction_kind::product: return CombiningKind::MUL;
      case reduction_kind::max: return floating() ? CombiningKind::MAXIMUMF : is_signed_integer(type) ? CombiningKind::MAXSI : CombiningKind::MAXUI;
      default: return floating() ? CombiningKind::MINIMUMF : is_signed_integer(type) ? CombiningKind::MINSI : CombiningKind::MINUI;
    }
  }
  // The result in the compute type of the tensor.
  Value finish(code_builder& b, Value total, std::int64_t count, element_type result) const {
    if (kind != reduction_kind::mean) return total;
    if (floating()) return b.make<arith::MulFOp>(total, b.number(total.getType(), 1.0 / static_cast<double>(count)));
    Value divisor = b.integer(total.getType(), std::max<std::int64_t>(count, 1));
    Value mean = is_signed_integer(type) ? b.make<arith::DivSIOp>(total, divisor).getResult() : b.make<arith::DivUIOp>(total, divisor).getResult();
    return convert_element(b, mean, type, result);
  }
};

// The position in the result of a position in the input.
position result_position(code_builder& code, const position& where, const std::vector<std::int64_t>& axes, bool keep_dims) {
  position result;
  for (std::size_t axis = 0; axis < where.size(); ++axis) {
    bool combined = std::ranges::find(axes, static_cast<std::int64_t>(axis)) != axes.end();
    if (!combined) result.push_back(where[axis]);
    else if (keep_dims) result.push_back({code.constant(0), 0, {}, 0, 1, any_multiple});
  }
  return result;
}

// Positions of the kept axes alone; the combined ones are 0.
position kept_position(code_builder& code, const reduction_space& space, std::size_t rank, std::span<const Value> at) {
  position where(rank, axis_index{code.constant(0), 0, {}, 0, 1, any_multiple});
  for (std::size_t i = 0; i < space.kept.size(); ++i) where[space.kept[i]] = {at[i], 0, {}, 0, space.kept_dims[i], 1};
  return where;
}

void store_result(kernel_emitter& e, const position& where, Value result, std::int64_t lanes) {
  evaluator ev(e);
  ev.bind(e.anchor_result(), result);
  ev.store_outputs(where, lanes);
}

// The outputs of a reduction over nothing: every element is the neutral one.
bool is_empty(const std::vector<std::int64_t>& dims) { return std::ranges::find(dims, 0) != dims.end(); }

}  // namespace

void emit_reduce(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<reduce>();
  auto& code = e.code;
  value input = e.anchor()->inputs()[0];
  element_type type = input.type().type;
  auto dims = kernel_emitter::dims(input);
  if (is_empty(dims)) throw error(error_kind::unsupported, "a reduction over an empty tensor (" + input.type().str() + ") has no CPU code; fold it ahead of time");
  bool wide = op.kind == reduction_kind::mean && !is_float(type);
  rule r{op.kind, wide ? (is_unsigned_integer(type) ? element_type::u64 : element_type::i64) : type};
  reduction_space space(e, input, op.axes);
  auto read = [&](const position& where, std::int64_t lanes) {
    evaluator ev(e);
    return convert_element(code, ev.at(input, where, lanes), wide ? type : r.type, r.type);
  };

  if (space.inner) {
    std::int64_t lanes = e.lanes_for(r.type, space.lane_extent);
    auto combine = [&](std::span<const Value> a, std::span<const Value> b) { return values{r.combine(code, a[0], b[0])}; };
    e.parallel("reduce", space.kept_dims, space.count, [&](std::span<const Value> at) {
      Value start = r.start(code, lanes);
      values total = space.walk_row(at, lanes, 4, {start}, [&](const position& where, std::int64_t n, Value valid, std::span<const Value> state) {
        Value x = read(where, n);
        if (valid) x = code.select(valid, x, start);
        return values{r.combine(code, state[0], x)};
      }, combine);
      Value result = r.finish(code, code.horizontal(r.combining(), total[0]), space.count, type);
      store_result(e, result_position(code, kept_position(code, space, dims.size(), at), op.axes, op.keep_dims), result, 1);
    });
    return;
  }
  std::int64_t native = e.lanes_for(r.type, space.lane_extent);
  space.parallel_columns("reduce", r.type, space.count, [&](std::span<const Value> at, Value first, std::int64_t width) {
    // Several vectors side by side share the loops over the combined axes.
    std::int64_t vectors = width / native;
    values start(static_cast<std::size_t>(vectors), r.start(code, native));
    values total = space.walk_column(at, first, native, start, [&](const position& where, std::int64_t n, Value, std::span<const Value> state) {
      values next;
      for (std::int64_t v = 0; v < vectors; ++v) {
        position shifted = where;
        shifted[space.lane_axis].base = code.add(where[space.lane_axis].base, v * native);
        next.push_back(r.combine(code, state[static_cast<std::size_t>(v)], read(shifted, n)));
      }
      return next;
    });
    for (std::int64_t v = 0; v < vectors; ++v) {
      position where = kept_position(code, space, dims.size(), at);
      where[space.lane_axis] = {code.add(first, v * native), native > 1 ? 1 : 0, {}, 0, space.lane_extent, 1};
      store_result(e, result_position(code, where, op.axes, op.keep_dims), r.finish(code, total[static_cast<std::size_t>(v)], space.count, type), native);
    }
  });
}

void emit_arg_reduce(kernel_emitter& e) {
  const auto& op = *e.anchor()->op().get_if<arg_reduce>();
  auto& code = e.code;
  value input = e.anchor()->inputs()[0];
  element_type type = input.type().type;
  auto dims = kernel_emitter::dims(input);
  if (is_empty(dims)) throw error(error_kind::unsupported, "arg_reduce of an empty tensor (" + input.type().str() + ") has no CPU code; fold it ahead of time");
  std::vector<std::int64_t> axes{op.axis};
  auto axis = static_cast<std::size_t>(op.axis);
  reduction_space space(e, input, axes);
  // Bools compare as bytes.
  element_type compared = type == element_type::boolean ? element_type::u8 : type;
  auto read = [&](const position& where, std::int64_t lanes) {
    evaluator ev(e);
    return convert_element(code, ev.at(input, where, lanes), type, compared);
  };
  // A NaN wins over every number.
  auto is_nan = [&](Value x) { return code.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x).getResult(); };
  auto both = [&](Value x, Value y) { return code.make<arith::AndIOp>(x, y).getResult(); };
  auto either = [&](Value x, Value y) { return code.make<arith::OrIOp>(x, y).getResult(); };
  auto strictly = [&](Value x, Value y) {
    std::array<Value, 2> pair{x, y};
    Value wins = apply(code, op.largest ? scalar_function::greater : scalar_function::less, compared, pair);
    if (!is_float(type)) return wins;
    return either(wins, both(is_nan(x), code.make<arith::CmpFOp>(arith::CmpFPredicate::ORD, y, y)));
  };
  auto tied = [&](Value x, Value y) {
    std::array<Value, 2> pair{x, y};
    Value equal = apply(code, scalar_function::equal, compared, pair);
    return is_float(type) ? either(equal, both(is_nan(x), is_nan(y))) : equal;
  };
  auto better = [&](Value x, Value best) { return op.select_last ? either(strictly(x, best), tied(x, best)) : strictly(x, best); };
  // state: best value, its index; -1 before the first.
  auto meet = [&](Value x, Value index, Value valid, std::span<const Value> state) {
    Value none = code.less(state[1], code.integer(state[1].getType(), 0));
    Value take = code.make<arith::OrIOp>(better(x, state[0]), none);
    if (valid) take = code.make<arith::AndIOp>(take, valid);
    return values{code.select(take, x, state[0]), code.select(take, index, state[1])};
  };
  auto begin = [&](std::int64_t lanes) { return values{code.number(code.type(compared, lanes), 0), code.integer(code.type(element_type::i64, lanes), -1)}; };

  if (space.inner) {
    std::int64_t lanes = std::min(e.lanes_for(compared, space.lane_extent), e.native_lanes());
    // The order between two winners of different lanes: by value, then by index.
    auto join = [&](std::span<const Value> a, std::span<const Value> b) {
      Value absent_a = code.less(a[1], code.integer(a[1].getType(), 0)), absent_b = code.less(b[1], code.integer(b[1].getType(), 0));
      Value nearer = op.select_last ? code.less(a[1], b[1]) : code.less(b[1], a[1]);
      Value take = either(either(strictly(b[0], a[0]), both(tied(b[0], a[0]), nearer)), absent_a);
      Value present_b = code.make<arith::XOrIOp>(absent_b, code.integer(absent_b.getType(), 1));
      take = code.make<arith::AndIOp>(take, present_b);
      return values{code.select(take, b[0], a[0]), code.select(take, b[1], a[1])};
    };
    e.parallel("arg_reduce", space.kept_dims, space.count * 2, [&](std::span<const Value> at) {
      values best = space.walk_row(at, lanes, 2, begin(lanes), [&](const position& where, std::int64_t n, Value valid, std::span<const Value> state) {
        Value index = code.add(code.splat(where[axis].base, n), code.lane_numbers(n));
        return meet(read(where, n), index, valid, state);
      }, join);
      values winner{code.lane(best[0], 0), code.lane(best[1], 0)};
      for (std::int64_t lane = 1; lane < code_builder::lanes_of(best[0]); ++lane) {
        values next{code.lane(best[0], lane), code.lane(best[1], lane)};
        winner = join(winner, next);
      }
      store_result(e, result_position(code, kept_position(code, space, dims.size(), at), axes, op.keep_dims), winner[1], 1);
    });
    return;
  }
  std::int64_t native = e.lanes_for(compared, space.lane_extent);
  space.parallel_columns("arg_reduce", compared, space.count * 2, [&](std::span<const Value> at, Value first, std::int64_t width) {
    code.loop(0, width, native, [&](Value offset) {
      Value lane = code.add(first, offset);
      values best = space.walk_column(at, lane, native, begin(native), [&](const position& where, std::int64_t n, Value, std::span<const Value> state) {
        return meet(read(where, n), code.splat(where[axis].base, n), {}, state);
      });
      position where = kept_position(code, space, dims.size(), at);
      where[space.lane_axis] = {lane, native > 1 ? 1 : 0, {}, 0, space.lane_extent, 1};
      store_result(e, result_position(code, where, axes, op.keep_dims), best[1], native);
    });
  });
}

}  // namespace kiln::cpu
