// Generates code for every row of ir/scalar_function.hpp and for conversions between element types, on scalars and
// vectors. Agrees with ir/reference/scalar_rules.hpp: f32 within a few units in the last place, the same NaN and
// infinities, integers exactly.
#pragma once

#include <span>

#include "ir/scalar_function.hpp"
#include "mlir_bridge/codegen/code_builder.hpp"

namespace kiln::codegen {

// `type` is the element type of the operands (of the last one for `where`); operands are compute values of equal lanes.
Value apply(code_builder& code, scalar_function function, element_type type, std::span<const Value> operands);

// From a compute value of type `from` to a compute value of type `to`, rounded to `to`'s storage precision.
Value convert_element(code_builder& code, Value v, element_type from, element_type to);
// Converts a float to an integer of at most 32 bits. Every value must be within the range of i32, or NaN, which becomes
// 0.
Value float_in_range_to_integer(code_builder& code, Value v, element_type to);

// Applies a libm function (given by its f64 name, "tan"), or the target's replacement for it, to each lane of an f32 or
// f64 value.
Value call_libm(code_builder& code, const std::string& function, std::span<const Value> operands);
// Calls libm itself for each lane.
Value call_libm_by_lane(code_builder& code, const std::string& function, std::span<const Value> operands);

// Minimum for reductions and pooling. Returns NaN if an operand is NaN, as the reference does.
Value smaller(code_builder& code, element_type type, Value a, Value b);
Value larger(code_builder& code, element_type type, Value a, Value b);

// Returns exp of an f32 or f64 value.
Value exponential(code_builder& code, Value x);

}  // namespace kiln::codegen
