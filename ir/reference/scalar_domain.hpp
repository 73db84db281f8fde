// The element types that a scalar function is defined on.
#pragma once

#include "ir/element_type.hpp"
#include "ir/scalar_function.hpp"

namespace kiln {

enum class scalar_domain : std::uint8_t {
  numeric,  // floats and integers
  floating,
  integral,
  logical,  // bool
  any,
};

constexpr bool accepts(scalar_domain domain, element_type type) {
  using enum element_type;
  // Scalar functions are not defined on these storage types.
  for (element_type stored : {i4, u4, i2, u2, f4e2m1, f8e8m0})
    if (type == stored) return false;
  bool logical = type == boolean;
  bool floating = type <= f8e5m2 || type == f8e4m3fnuz || type == f8e5m2fnuz;
  switch (domain) {
    case scalar_domain::numeric: return !logical;
    case scalar_domain::floating: return floating;
    case scalar_domain::integral: return !floating && !logical;
    case scalar_domain::logical: return logical;
    case scalar_domain::any: return true;
  }
  return false;
}

scalar_domain domain_of(scalar_function function);

}  // namespace kiln
