// Code for every row of ir/scalar_function.hpp, and for conversions between element types, on scalars and vectors
// alike. Agrees with ir/reference/scalar_rules.hpp: f32 within a few units in the last place, NaN and infinities as
// there, integers exact.
#pragma once

#include <span>

#include "ir/scalar_function.hpp"
#include "mlir_bridge/codegen/code_builder.hpp"

namespace kiln::codegen {

// `type` is the element type of the operands (of the last one for `where`); operands are compute values of equal lanes.
Value apply(code_builder& code, scalar_function function, element_type type, std::span<const Value> operands);

// From a compute value of type `from` to a compute value of type `to`, rounded to `to`'s storage precision.
Value convert_element(code_builder& code, Value v, element_type from, element_type to);
// A float as an integer of at most 32 bits, where every v is within the range of i32 or NaN, which becomes 0.
Value float_in_range_to_integer(code_builder& code, Value v, element_type to);

// A libm function (its f64 name: "tan"), or what the target has for it, applied to each lane of an f32 or f64 value.
Value call_libm(code_builder& code, const std::string& function, std::span<const Value> operands);

// NaN wins, as in the reference: for reductions and pooling.
Value smaller(code_builder& code, element_type type, Value a, Value b);
Value larger(code_builder& code, element_type type, Value a, Value b);

// exp of an f32 or f64 value.
Value exponential(code_builder& code, Value x);

}  // namespace kiln::codegen
