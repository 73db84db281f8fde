// Maps a run-time element_type to its C++ types. visit_type(type, f) calls f(format{}); `format` gives the storage type
// of an element, the type it is computed in, and the conversions between them. Elements of fewer than 8 bits are not
// addressable: they must be unpacked first (see tensor.hpp), and visit_type throws error{unsupported} for them.
#pragma once

#include <cmath>
#include <type_traits>

#include "ir/element_type.hpp"
#include "ir/error.hpp"

namespace kiln::reference {

template <class T, element_type Type>
struct native_format {
  using storage = T;
  using compute = T;
  static constexpr element_type type = Type;
  static compute load(storage s) { return s; }
  static storage store(compute c) { return c; }
};

struct boolean_format {
  using storage = std::uint8_t;
  using compute = bool;
  static constexpr element_type type = element_type::boolean;
  static compute load(storage s) { return s != 0; }
  static storage store(compute c) { return c; }
};

// Formats that are stored in a narrow type, computed in f32 and rounded once.
template <class Bits, element_type Type, float (*Widen)(Bits), Bits (*Narrow)(float)>
struct narrow_format {
  using storage = Bits;
  using compute = float;
  static constexpr element_type type = Type;
  static compute load(storage s) { return Widen(s); }
  static storage store(compute c) { return Narrow(c); }
};

template <class F>
decltype(auto) visit_type(element_type type, F&& f) {
  using enum element_type;
  switch (type) {
    case f64: return f(native_format<double, f64>{});
    case f32: return f(native_format<float, f32>{});
    case f16: return f(narrow_format<std::uint16_t, f16, f16_to_f32, f32_to_f16>{});
    case bf16: return f(narrow_format<std::uint16_t, bf16, bf16_to_f32, f32_to_bf16>{});
    case f8e4m3: return f(narrow_format<std::uint8_t, f8e4m3, f8e4m3_to_f32, f32_to_f8e4m3>{});
    case f8e5m2: return f(narrow_format<std::uint8_t, f8e5m2, f8e5m2_to_f32, f32_to_f8e5m2>{});
    case i64: return f(native_format<std::int64_t, i64>{});
    case i32: return f(native_format<std::int32_t, i32>{});
    case i16: return f(native_format<std::int16_t, i16>{});
    case i8: return f(native_format<std::int8_t, i8>{});
    case u64: return f(native_format<std::uint64_t, u64>{});
    case u32: return f(native_format<std::uint32_t, u32>{});
    case u16: return f(native_format<std::uint16_t, u16>{});
    case u8: return f(native_format<std::uint8_t, u8>{});
    case boolean: return f(boolean_format{});
    case f8e4m3fnuz: return f(narrow_format<std::uint8_t, f8e4m3fnuz, f8e4m3fnuz_to_f32, f32_to_f8e4m3fnuz>{});
    case f8e5m2fnuz: return f(narrow_format<std::uint8_t, f8e5m2fnuz, f8e5m2fnuz_to_f32, f32_to_f8e5m2fnuz>{});
    case f8e8m0: return f(narrow_format<std::uint8_t, f8e8m0, f8e8m0_to_f32, f32_to_f8e8m0>{});
    case f4e2m1:
    case i4:
    case u4:
    case i2:
    case u2: break;
  }
  throw error(error_kind::unsupported, std::string(name(type)) + " cannot be computed with; convert it first");
}

// Converts between arithmetic types. Float to integer truncates, saturates at 64 bits (NaN becomes 0) and then wraps.
// Anything to bool is `!= 0`.
template <class To, class From>
To cast(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(value)) return 0;
    if (value >= From(9223372036854775808.0)) {
      if constexpr (std::is_same_v<To, std::uint64_t>)
        return value >= From(18446744073709551616.0) ? UINT64_MAX : static_cast<std::uint64_t>(value);
      return static_cast<To>(INT64_MAX);
    }
    if (value <= From(-9223372036854775808.0)) return static_cast<To>(INT64_MIN);
    return static_cast<To>(static_cast<std::int64_t>(value));
  } else {
    return static_cast<To>(value);
  }
}

// The type that accumulates sums of a compute type: double for floats, otherwise 64-bit integers modulo 2^64.
template <class Compute>
using accumulator = std::conditional_t<std::is_floating_point_v<Compute>, double, std::uint64_t>;

}  // namespace kiln::reference
