// The table of functions that an elementwise operation can apply: name, number of operands, and the kind of result. To
// add a function, add a row here, a row in the reference (ir/reference/scalar_rules.hpp) and a row in the code
// generator.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "ir/enum_names.hpp"

namespace kiln {

// clang-format off
// KILN_SCALAR(name, arity, result): result is `same` (operands and result share a type), `boolean` (comparison or test) or
// `logical` (bool operands and result). `where` takes (bool, T, T); `clamp` (x, low, high).
#define KILN_SCALAR_FUNCTIONS(KILN_SCALAR) \
  KILN_SCALAR(add, 2, same) KILN_SCALAR(sub, 2, same) KILN_SCALAR(mul, 2, same) KILN_SCALAR(div, 2, same) \
  KILN_SCALAR(pow, 2, same) KILN_SCALAR(min, 2, same) KILN_SCALAR(max, 2, same) \
  KILN_SCALAR(mod, 2, same) KILN_SCALAR(fmod, 2, same) KILN_SCALAR(prelu, 2, same) \
  KILN_SCALAR(bit_and, 2, same) KILN_SCALAR(bit_or, 2, same) KILN_SCALAR(bit_xor, 2, same) \
  KILN_SCALAR(shift_left, 2, same) KILN_SCALAR(shift_right, 2, same) \
  KILN_SCALAR(equal, 2, boolean) KILN_SCALAR(less, 2, boolean) KILN_SCALAR(less_equal, 2, boolean) \
  KILN_SCALAR(greater, 2, boolean) KILN_SCALAR(greater_equal, 2, boolean) \
  KILN_SCALAR(logical_and, 2, logical) KILN_SCALAR(logical_or, 2, logical) KILN_SCALAR(logical_xor, 2, logical) \
  KILN_SCALAR(logical_not, 1, logical) \
  KILN_SCALAR(is_nan, 1, boolean) KILN_SCALAR(is_inf, 1, boolean) \
  KILN_SCALAR(abs, 1, same) KILN_SCALAR(neg, 1, same) KILN_SCALAR(sign, 1, same) KILN_SCALAR(bit_not, 1, same) \
  KILN_SCALAR(exp, 1, same) KILN_SCALAR(log, 1, same) KILN_SCALAR(sqrt, 1, same) KILN_SCALAR(rsqrt, 1, same) \
  KILN_SCALAR(reciprocal, 1, same) KILN_SCALAR(erf, 1, same) KILN_SCALAR(tanh, 1, same) KILN_SCALAR(sigmoid, 1, same) \
  KILN_SCALAR(sin, 1, same) KILN_SCALAR(cos, 1, same) KILN_SCALAR(tan, 1, same) KILN_SCALAR(asin, 1, same) \
  KILN_SCALAR(acos, 1, same) KILN_SCALAR(atan, 1, same) KILN_SCALAR(sinh, 1, same) KILN_SCALAR(cosh, 1, same) \
  KILN_SCALAR(asinh, 1, same) KILN_SCALAR(acosh, 1, same) KILN_SCALAR(atanh, 1, same) \
  KILN_SCALAR(floor, 1, same) KILN_SCALAR(ceil, 1, same) KILN_SCALAR(round, 1, same) /* half to even */ \
  KILN_SCALAR(relu, 1, same) \
  KILN_SCALAR(where, 3, same) KILN_SCALAR(clamp, 3, same)
// clang-format on

enum class scalar_function : std::uint8_t {
#define KILN_SCALAR(name, arity, result) name,
  KILN_SCALAR_FUNCTIONS(KILN_SCALAR)
#undef KILN_SCALAR
};

enum class scalar_result : std::uint8_t { same, boolean, logical };

struct scalar_function_row {
  std::string_view name;
  int arity;
  scalar_result result;
};

inline constexpr auto scalar_function_table = std::to_array<scalar_function_row>({
#define KILN_SCALAR(name, arity, result) {#name, arity, scalar_result::result},
    KILN_SCALAR_FUNCTIONS(KILN_SCALAR)
#undef KILN_SCALAR
});

template <>
struct enum_table<scalar_function> {
  static constexpr auto names = [] {
    std::array<std::string_view, scalar_function_table.size()> result;
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = scalar_function_table[i].name;
    return result;
  }();
};

constexpr const scalar_function_row& row(scalar_function f) {
  return scalar_function_table[static_cast<std::size_t>(f)];
}

}  // namespace kiln
