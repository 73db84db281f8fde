#include "aot/onnx/ops/resize_open.hpp"

#include <algorithm>
#include <cmath>

#include "aot/onnx/ops/contrib.hpp"

namespace kiln::onnx_import {
namespace {

using fn = scalar_function;
using enum element_type;

// Computes coordinates and weights of one axis as f64 tensors, with the formulas of resize_weights.cpp.
class open_axis {
 public:
  open_axis(node& n, const resize& op, const open_resampling& how)
      : b_(n.b), op_(op), how_(how), axis_(how.axis), from_(real(how.from)), to_(real(how.to)) {
    scale_ = how.scale ? b_.to_type(how.scale, f64) : axis_.scale > 0 ? number(axis_.scale) : div(to_, from_);
    y_ = b_.iota_like(f64, {how.to}, 0);
    source_ = source();
  }

  // Returns, for mode `nearest`, the index of the input element for each output element.
  value nearest() const {
    value at = source_;
    switch (op_.nearest) {
      case resize_nearest::round_prefer_floor: at = b_.unary(fn::ceil, sub(at, number(0.5))); break;
      case resize_nearest::round_prefer_ceil: at = b_.unary(fn::floor, add(at, number(0.5))); break;
      case resize_nearest::floor: at = b_.unary(fn::floor, at); break;
      case resize_nearest::ceil: at = b_.unary(fn::ceil, at); break;
    }
    at = b_.binary(fn::max, b_.binary(fn::min, at, sub(from_, number(1))), number(0));
    return b_.to_type(at, i64);
  }

  // Returns the weight matrix [from, to].
  value matrix() const {
    value place = b_.with_dims(b_.iota_like(f64, {how_.from}, 0), {how_.from, 1});
    value weights = kernel(sub(place, source_));
    value total = b_.reduced(reduction_kind::sum, weights, {0}, true);
    if (!op_.exclude_outside) {
      // Neighbours beyond the ends take the value of the end element.
      const dim count = neighbours();
      value beyond = b_.with_dims(b_.iota_like(f64, {count}, 0), {count, 1});
      value before = sum(kernel(sub(sub(number(-1), beyond), source_)));
      value behind = sum(kernel(sub(add(from_, beyond), source_)));
      total = add(total, add(before, behind));
      value first = b_.binary(fn::equal, place, number(0)), last = b_.binary(fn::equal, place, sub(from_, number(1)));
      weights = add(weights, b_.where(first, before, number(0)));
      weights = add(weights, b_.where(last, behind, number(0)));
    }
    return axis_.antialias || op_.exclude_outside ? div(weights, total) : weights;
  }

  // Returns where the result is the model's extrapolation_value, bool[to].
  value outside() const {
    return b_.binary(fn::logical_or, b_.binary(fn::less, source_, number(0)),
                     b_.binary(fn::greater, source_, sub(from_, number(1))));
  }

 private:
  value number(double x) const { return b_.scalar(f64, x); }
  value real(const dim& d) const { return b_.to_type(b_.data_of(d), f64); }
  value add(value x, value y) const { return b_.binary(fn::add, x, y); }
  value sub(value x, value y) const { return b_.binary(fn::sub, x, y); }
  value mul(value x, value y) const { return b_.binary(fn::mul, x, y); }
  value div(value x, value y) const { return b_.binary(fn::div, x, y); }
  // onnxruntime divides by a scale that the model computes in f32, which decides where the nearest element lies.
  value over_scale(value x) const {
    return how_.scale ? b_.to_type(div(b_.to_type(x, f32), how_.scale), f64) : div(x, scale_);
  }
  value sum(value x) const { return b_.reduced(reduction_kind::sum, x, {0}, true); }

  // Returns the input coordinate of each output element, [to].
  value source() const {
    const value half = number(0.5), one = number(1), width = how_.scale ? to_ : mul(scale_, from_);
    const value pixel = over_scale(add(y_, half)), single = b_.binary(fn::equal, width, one);
    switch (axis_.coordinates) {
      case sampling::half_pixel_for_nearest: return pixel;
      case sampling::crop_and_resize: {
        const auto [first, last] = axis_.region;
        const value end = sub(from_, one), span = mul(number(last - first), end);
        value within = b_.where(single, mul(span, half), div(mul(y_, span), sub(width, one)));
        return add(within, mul(number(first), end));
      }
      case sampling::of_operation: break;
    }
    switch (op_.coordinates) {
      case resize_coordinates::asymmetric: return over_scale(y_);
      case resize_coordinates::align_corners:
        return b_.where(single, number(0), div(mul(y_, sub(from_, one)), sub(width, one)));
      case resize_coordinates::pytorch_half_pixel: return b_.where(single, number(-0.5), sub(pixel, half));
      case resize_coordinates::half_pixel_symmetric:
        return add(mul(mul(from_, half), sub(one, div(to_, width))), sub(pixel, half));
      case resize_coordinates::half_pixel: break;
    }
    return sub(pixel, half);
  }

  std::int64_t reach() const { return op_.mode == resize_mode::cubic ? 2 : 1; }

  // Returns an upper bound on the number of neighbours beyond each end.
  dim neighbours() const {
    if (!axis_.antialias) return reach() + 1;
    if (axis_.scale > 0)
      return static_cast<std::int64_t>(std::ceil(static_cast<double>(reach()) / std::min(axis_.scale, 1.0))) + 1;
    return dim(reach()) * (how_.from / how_.to + dim(1)) + dim(1);
  }

  value kernel(value distance) const {
    value x = b_.unary(fn::abs, distance);
    if (axis_.antialias) x = mul(x, b_.binary(fn::min, scale_, number(1)));
    if (op_.mode != resize_mode::cubic) return b_.unary(fn::relu, sub(number(1), x));
    const double a = op_.cubic_coefficient;
    auto polynomial = [&](double c3, double c2, double c1, double c0) {
      return add(mul(add(mul(add(mul(number(c3), x), number(c2)), x), number(c1)), x), number(c0));
    };
    value near = polynomial(a + 2, -(a + 3), 0, 1), far = polynomial(a, -5 * a, 8 * a, -4 * a);
    far = b_.where(b_.binary(fn::less, x, number(2)), far, number(0));
    return b_.where(b_.binary(fn::less_equal, x, number(1)), near, far);
  }

  builder& b_;
  const resize& op_;
  const open_resampling& how_;
  const resampling& axis_;
  value from_, to_, scale_, y_, source_;
};

}  // namespace

value resampled(node& n, value x, const resize& op, const open_resampling& how) {
  builder& b = n.b;
  const element_type type = x.type().type;
  const auto last = static_cast<std::int64_t>(x.type().rank()) - 1;
  open_axis axis(n, op, how);
  x = op.mode == resize_mode::nearest ? b.add(gather{last}, {x, axis.nearest()})
                                      : matmul(b, x, b.to_type(axis.matrix(), type), type);
  if (how.axis.coordinates != sampling::crop_and_resize) return x;
  return b.where(axis.outside(), b.scalar(type, n.real("extrapolation_value", 0)), x);
}

}  // namespace kiln::onnx_import
