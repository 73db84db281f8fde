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

// i4 and u4 are storage types: no function is defined on them.
constexpr bool accepts(scalar_domain domain, element_type type) {
  bool logical = type == element_type::boolean;
  bool floating = type <= element_type::f8e5m2;
  if (type == element_type::i4 || type == element_type::u4) return false;
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
