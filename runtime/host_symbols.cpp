#include "runtime/host_symbols.hpp"

#include <math.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "ir/element_type.hpp"

namespace kiln {
namespace {

// LLVM's run-time library calls for half and bfloat16. The ABI passes a 16-bit float in the low bits of a vector
// register, like the low bits of a float. So float stands for it here, and the compiler need not support the type.
extern "C" {
static float half_to_float(float half) {
  return f16_to_f32(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(half)));
}
static float float_to_half(float x) { return std::bit_cast<float>(static_cast<std::uint32_t>(f32_to_f16(x))); }
static float float_to_bfloat(float x) { return std::bit_cast<float>(static_cast<std::uint32_t>(f32_to_bf16(x))); }

// Rounding to nearest f32 first would round twice. Rounding to odd first avoids the double rounding.
static float double_to_odd_float(double x) {
  float nearest = static_cast<float>(x);
  if (isnan(x) || isinf(nearest) || static_cast<double>(nearest) == x) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (fabs(static_cast<double>(nearest)) > fabs(x)) --bits;  // toward zero
  return std::bit_cast<float>(bits | 1u);
}
static float double_to_half(double x) { return float_to_half(double_to_odd_float(x)); }
static float double_to_bfloat(double x) { return float_to_bfloat(double_to_odd_float(x)); }
}

struct row {
  std::string_view name;
  const void* address;
};

template <class R, class... Arguments>
const void* address_of(R (*function)(Arguments...)) {
  return reinterpret_cast<const void*>(function);
}

#define BOTH(R_AND_ARGUMENTS_F64, R_AND_ARGUMENTS_F32, function)                  \
  row{#function, address_of(static_cast<R_AND_ARGUMENTS_F64>(::function))}, row { \
    #function "f", address_of(static_cast<R_AND_ARGUMENTS_F32>(::function##f))    \
  }
using unary64 = double (*)(double);
using unary32 = float (*)(float);
using binary64 = double (*)(double, double);
using binary32 = float (*)(float, float);
#define UNARY(function) BOTH(unary64, unary32, function)
#define BINARY(function) BOTH(binary64, binary32, function)

auto make_table() {
  std::array table{
      row{"memcpy", address_of(static_cast<void* (*)(void*, const void*, size_t)>(::memcpy))},
      row{"memmove", address_of(static_cast<void* (*)(void*, const void*, size_t)>(::memmove))},
      row{"memset", address_of(static_cast<void* (*)(void*, int, size_t)>(::memset))},
      row{"memcmp", address_of(static_cast<int (*)(const void*, const void*, size_t)>(::memcmp))},
      UNARY(exp),
      UNARY(exp2),
      UNARY(expm1),
      UNARY(log),
      UNARY(log2),
      UNARY(log10),
      UNARY(log1p),
      UNARY(sin),
      UNARY(cos),
      UNARY(tan),
      UNARY(asin),
      UNARY(acos),
      UNARY(atan),
      UNARY(sinh),
      UNARY(cosh),
      UNARY(tanh),
      UNARY(asinh),
      UNARY(acosh),
      UNARY(atanh),
      UNARY(erf),
      UNARY(erfc),
      UNARY(sqrt),
      UNARY(cbrt),
      UNARY(floor),
      UNARY(ceil),
      UNARY(trunc),
      UNARY(round),
      UNARY(rint),
      UNARY(nearbyint),
      UNARY(fabs),
      UNARY(roundeven),
      UNARY(tgamma),
      BINARY(pow),
      BINARY(atan2),
      BINARY(fmod),
      BINARY(remainder),
      BINARY(fmin),
      BINARY(fmax),
      BINARY(copysign),
      BINARY(hypot),
      BOTH(double (*)(double, double, double), float (*)(float, float, float), fma),
      BOTH(double (*)(double, int), float (*)(float, int), ldexp),
      BOTH(double (*)(double, int*), float (*)(float, int*), frexp),
      BOTH(void (*)(double, double*, double*), void (*)(float, float*, float*), sincos),
      BOTH(long (*)(double), long (*)(float), lrint),
      BOTH(long (*)(double), long (*)(float), lround),
      row{"__extendhfsf2", address_of(half_to_float)},
      row{"__truncsfhf2", address_of(float_to_half)},
      row{"__truncdfhf2", address_of(double_to_half)},
      row{"__truncsfbf2", address_of(float_to_bfloat)},
      row{"__truncdfbf2", address_of(double_to_bfloat)},
  };
  std::ranges::sort(table, {}, &row::name);
  return table;
}
#undef BOTH
#undef UNARY
#undef BINARY

}  // namespace

const void* find_host_symbol(std::string_view name) {
  static const auto table = make_table();
  auto it = std::ranges::lower_bound(table, name, {}, &row::name);
  return it != table.end() && it->name == name ? it->address : nullptr;
}

}  // namespace kiln
