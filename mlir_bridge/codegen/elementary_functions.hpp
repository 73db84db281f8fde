// libm's functions as code: on GPUs, which have no libm, and for the vectors of CPUs. They are built from multiply-add,
// integer arithmetic on the bits, and hardware instructions where there are any (exp2, log2, reciprocal). f32 functions
// are within a few units in the last place of libm and have its NaN, infinities and denormal results. For f64 there are
// the exponential functions, pow and fmod. Internal to mlir_bridge.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "mlir_bridge/codegen/code_builder.hpp"

namespace kiln::codegen {

// The instructions and functions of a target from which elementary_function() builds others.
struct approximations {
  // Names of LLVM's f32 intrinsics for approximations in hardware. Empty if there is none: a polynomial or a division
  // is used, and the functions with the suffix ".fast" cannot be built.
  std::string_view exp2, log2, reciprocal;
  // The function by the target's libm. Where it is given, sin, cos and tan are code for all lanes at once and leave
  // vectors with a large angle to it.
  Value (*by_libm)(code_builder&, std::string_view name, std::span<const Value> operands) = nullptr;
};

// `name` is the f64 name in libm; operands are f32 or f64 with equal lanes. A name that ends in ".fast" (exp, exp2,
// log, tanh, erf, pow, div, sigmoid) has an error of about 2^-18, which is enough for 16-bit elements. Returns null if
// there is no such function for the type. "exp.flushed" is an exp of f32 whose results below 2^-125.5 are 0.
Value elementary_function(code_builder& code, std::string_view name, std::span<const Value> operands,
                          const approximations& hardware);

// For |x| below this, tan, asinh and atanh return x, in f64 as well. A division there could flush denormals.
inline constexpr double straight = 1e-8;

// Arithmetic on floats of one width with any number of lanes.
struct elementary_functions {
  code_builder& b;
  const approximations& hardware;

  Value number(Value like, double v) const { return b.number(like.getType(), v); }
  Value add(Value x, Value y) const { return b.make<mlir::arith::AddFOp>(x, y); }
  Value sub(Value x, Value y) const { return b.make<mlir::arith::SubFOp>(x, y); }
  Value mul(Value x, Value y) const { return b.make<mlir::arith::MulFOp>(x, y); }
  Value div(Value x, Value y) const { return b.make<mlir::arith::DivFOp>(x, y); }
  Value add(Value x, double y) const { return add(x, number(x, y)); }
  Value mul(Value x, double y) const { return mul(x, number(x, y)); }
  Value fma(Value x, Value y, Value z) const { return b.fma(x, y, z); }
  Value fma(Value x, double y, Value z) const { return b.fma(x, number(x, y), z); }
  Value neg(Value x) const { return b.make<mlir::arith::NegFOp>(x); }
  Value abs(Value x) const { return b.make<mlir::math::AbsFOp>(x); }
  Value sqrt(Value x) const { return b.make<mlir::math::SqrtOp>(x); }
  Value round(Value x) const { return b.make<mlir::math::RoundEvenOp>(x); }
  Value copy_sign(Value magnitude, Value sign) const { return b.make<mlir::math::CopySignOp>(magnitude, sign); }
  Value less(Value x, Value y) const { return b.make<mlir::arith::CmpFOp>(mlir::arith::CmpFPredicate::OLT, x, y); }
  Value less(Value x, double y) const { return less(x, number(x, y)); }
  Value equal(Value x, double y) const {
    return b.make<mlir::arith::CmpFOp>(mlir::arith::CmpFPredicate::OEQ, x, number(x, y));
  }
  Value is_nan(Value x) const { return b.make<mlir::arith::CmpFOp>(mlir::arith::CmpFPredicate::UNO, x, x); }
  Value select(Value c, Value x, Value y) const { return b.select(c, x, y); }
  // Evaluates a polynomial; coefficients are given from the highest power down.
  Value polynomial(Value x, std::initializer_list<double> coefficients) const;

  bool wide(Value x) const { return code_builder::scalar_of(x).isF64(); }
  mlir::Type integers(Value x) const {
    return code_builder::with_lanes(b.builder.getIntegerType(wide(x) ? 64 : 32), code_builder::lanes_of(x));
  }
  Value bits(Value x) const { return b.make<mlir::arith::BitcastOp>(integers(x), x); }
  Value from_bits(Value bits, Value like) const { return b.make<mlir::arith::BitcastOp>(like.getType(), bits); }
  Value to_integer(Value x) const { return b.make<mlir::arith::FPToSIOp>(integers(x), x); }
  Value to_float(Value i, Value like) const { return b.make<mlir::arith::SIToFPOp>(like.getType(), i); }
  // Returns x * 2^n for |n| up to twice the exponent's range. Denormal results may be rounded twice.
  Value scale(Value x, Value n) const;
  // Applies an f32 intrinsic to each lane.
  Value each_lane(std::string_view intrinsic, Value x) const;
  // Applies a scalar f32 function lane by lane. For functions whose code is too large to be repeated for vectors.
  Value by_lane(std::span<const Value> operands, const std::function<Value(std::span<const Value>)>& body) const;

  // elementary_exponentials.cpp
  Value exp(Value x, int doublings = 0) const;  // exp(x) * 2^doublings
  // exp of f32 in 14 operations. Results below 2^-125.5 are 0.
  Value flushed_exp(Value x) const;
  Value log(Value x) const;
  Value log1p(Value x) const;
  Value tanh(Value x) const;
  Value sinh(Value x) const;
  Value cosh(Value x) const;
  Value asinh(Value x) const;
  Value acosh(Value x) const;
  Value atanh(Value x) const;
  Value erf(Value x) const;
  // erf of f32 in 22 operations without a division; its error is below 4 units in the last place where b.fma is fused.
  Value polynomial_erf(Value x) const;
  Value pow(Value x, Value y) const;
  Value fmod(Value x, Value y) const;
  // elementary_trigonometry.cpp, f32
  Value sin(Value x) const;
  Value cos(Value x) const;
  Value tan(Value x) const;
  Value asin(Value x) const;
  Value acos(Value x) const;
  Value atan(Value x) const;
  // elementary_functions.cpp: for 16-bit elements
  Value fast_exp2(Value x) const { return each_lane(hardware.exp2, x); }
  Value fast_exp(Value x) const;
  Value fast_log(Value x) const;
  Value fast_reciprocal(Value x) const;
  Value fast_tanh(Value x) const;
  Value fast_erf(Value x) const;
  Value fast_pow(Value x, Value y) const;

 private:
  struct reduced_angle {
    // |remainder| <= pi/4; quadrant is i32.
    Value remainder, quadrant;
  };
  // For angles below the limit of elementary_trigonometry.cpp, of any number of lanes; and for any one angle.
  reduced_angle reduce_small_angle(Value x) const;
  reduced_angle reduce_angle(Value x) const;
  // Applies a function of a reduced angle: by lanes, or to all lanes at once (approximations::by_libm).
  Value of_angle(std::string_view name, Value x, const std::function<Value(Value, reduced_angle)>& body) const;
  Value sine_polynomial(Value r) const;
  Value cosine_polynomial(Value r) const;
};

}  // namespace kiln::codegen
