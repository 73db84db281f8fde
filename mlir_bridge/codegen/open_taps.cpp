#include "mlir_bridge/codegen/open_taps.hpp"

#include <algorithm>
#include <array>

#include "mlir_bridge/codegen/rounded_operations.hpp"
#include "mlir_bridge/codegen/scalar_functions.hpp"

namespace kiln::codegen {

namespace {

namespace arith = mlir::arith;

// Coordinates are f32, rounded after each operation as in ONNX Runtime (reference/resize.cpp), so that all select the
// same neighbours.
class coordinate_code {
 public:
  coordinate_code(kernel_emitter& e, const resize& op, std::size_t axis, const dim& in, const dim& out, Value at)
      : e_(e),
        code_(e.code),
        op_(op),
        in_(in),
        out_(out),
        at_(at),
        in_size_(size(in)),
        out_size_(size(out)),
        scale_(op.scales[axis] != 0 ? number(op.scales[axis]) : divided(out_size_, in_size_)),
        may_keep_(op.scales[axis] == 0 || op.scales[axis] == 1) {}

  Value source() {
    const Value x = code_.make<arith::SIToFPOp>(code_.type(element_type::f32, code_builder::lanes_of(at_)), at_);
    const Value moved = computed(x);
    // An axis that keeps its size keeps its elements, also where f32 cannot express it.
    return may_keep_ ? code_.select(code_.equal(e_.size(in_), e_.size(out_)), x, moved) : moved;
  }

 private:
  Value computed(Value x) {
    switch (op_.coordinates) {
      case resize_coordinates::half_pixel: return half_pixel(x);
      case resize_coordinates::pytorch_half_pixel: return or_zero(half_pixel(x));
      case resize_coordinates::align_corners:
        return or_zero(divided(product(x, minus(in_size_, number(1))), minus(out_size_, number(1))));
      case resize_coordinates::asymmetric: return divided(x, scale_);
      case resize_coordinates::half_pixel_symmetric: {
        const Value adjustment = divided(out_size_, product(scale_, in_size_));
        const Value moved = product(product(in_size_, number(0.5)), minus(number(1), adjustment));
        return minus(plus(moved, divided(plus(x, number(0.5)), scale_)), number(0.5));
      }
    }
    return x;
  }

  Value half_pixel(Value x) { return minus(divided(plus(x, number(0.5)), scale_), number(0.5)); }
  // A single output takes the first input.
  Value or_zero(Value x) {
    return code_.select(code_.less(code_.constant(1), e_.size(out_)), x, code_.number(x.getType(), 0));
  }

  Value number(double v) { return code_.number(code_.scalar_type(element_type::f32), v); }
  Value size(const dim& d) {
    if (d.is_static()) return number(static_cast<double>(d.value()));
    return code_.make<arith::SIToFPOp>(code_.scalar_type(element_type::f32), e_.size(d));
  }
  template <class Op>
  Value exact(Value a, Value b) {
    const std::int64_t lanes = std::max(code_builder::lanes_of(a), code_builder::lanes_of(b));
    if (code_builder::lanes_of(a) != lanes) a = code_.splat(a, lanes);
    if (code_builder::lanes_of(b) != lanes) b = code_.splat(b, lanes);
    return code_.make<Op>(a, b, rounded_operations);
  }
  Value plus(Value a, Value b) { return exact<arith::AddFOp>(a, b); }
  Value minus(Value a, Value b) { return exact<arith::SubFOp>(a, b); }
  Value product(Value a, Value b) { return exact<arith::MulFOp>(a, b); }
  Value divided(Value a, Value b) { return exact<arith::DivFOp>(a, b); }

  kernel_emitter& e_;
  code_builder& code_;
  const resize& op_;
  const dim &in_, &out_;
  Value at_, in_size_, out_size_, scale_;
  bool may_keep_;
};

Value float_function(code_builder& code, scalar_function f, Value x) {
  const std::array operands{x};
  return apply(code, f, element_type::f32, operands);
}

Value nearest(code_builder& code, resize_nearest rule, Value x) {
  const Value half = code.number(x.getType(), 0.5);
  switch (rule) {
    case resize_nearest::round_prefer_floor:
      return float_function(code, scalar_function::ceil, code.make<arith::SubFOp>(x, half, rounded_operations));
    case resize_nearest::round_prefer_ceil:
      return float_function(code, scalar_function::floor, code.make<arith::AddFOp>(x, half, rounded_operations));
    case resize_nearest::floor: return float_function(code, scalar_function::floor, x);
    case resize_nearest::ceil: return float_function(code, scalar_function::ceil, x);
  }
  return x;
}

// Keys' kernel at distances 1 + t, t, 1 - t and 2 - t.
values cubic_weights(code_builder& code, double a, Value t) {
  const auto number = [&](double v) { return code.number(t.getType(), v); };
  const auto plus = [&](Value x, double y) { return code.make<arith::AddFOp>(x, number(y)).getResult(); };
  const auto times = [&](Value x, Value y) { return code.make<arith::MulFOp>(x, y).getResult(); };
  const auto near = [&](Value d) { return plus(times(times(plus(times(number(a + 2), d), -(a + 3)), d), d), 1); };
  const auto far = [&](Value d) {
    return plus(times(plus(times(plus(times(number(a), d), -5 * a), d), 8 * a), d), -4 * a);
  };
  const auto from = [&](double v) { return code.make<arith::SubFOp>(number(v), t).getResult(); };
  return {far(plus(t, 1)), near(t), near(from(1)), far(from(2))};
}

}  // namespace

open_taps open_taps_at(kernel_emitter& e, const resize& op, std::size_t axis, const dim& in, const dim& out, Value at,
                       element_type weight_type) {
  code_builder& code = e.code;
  const std::int64_t lanes = code_builder::lanes_of(at);
  const Value x = coordinate_code(e, op, axis, in, out, at).source();
  // A coordinate fits into 32 bits as indices do; vectors of i64 cannot be converted at once on most CPUs.
  const auto index_of = [&](Value whole) {
    const Value narrow = code.make<arith::FPToSIOp>(code.type(element_type::i32, lanes), whole);
    return convert_element(code, narrow, element_type::i32, code.index_element());
  };
  const auto inside = [&](Value index) { return e.min(code.max(index, 0), in - 1); };
  open_taps result;
  if (op.mode == resize_mode::nearest) {
    result.positions = {inside(index_of(nearest(code, op.nearest, x)))};
    return result;
  }
  const Value floor = float_function(code, scalar_function::floor, x), base = index_of(floor);
  Value t = code.make<arith::SubFOp>(x, floor);
  if (weight_type == element_type::f64) t = code.make<arith::ExtFOp>(code.type(element_type::f64, lanes), t);
  std::vector<std::int64_t> offsets{0, 1};
  if (op.mode == resize_mode::linear) {
    result.weights = {code.make<arith::SubFOp>(code.number(t.getType(), 1), t), t};
  } else {
    offsets = {-1, 0, 1, 2};
    result.weights = cubic_weights(code, op.cubic_coefficient, t);
  }
  Value total;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const Value index = code.add(base, offsets[i]), held = inside(index);
    result.positions.push_back(held);
    if (!op.exclude_outside) continue;
    Value& weight = result.weights[i];
    weight = code.select(code.equal(index, held), weight, code.number(weight.getType(), 0));
    total = total ? code.make<arith::AddFOp>(total, weight).getResult() : weight;
  }
  if (total)
    for (Value& weight : result.weights) weight = code.make<arith::DivFOp>(weight, total);
  return result;
}

}  // namespace kiln::codegen
