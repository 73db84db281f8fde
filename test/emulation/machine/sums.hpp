// Operations that integers of 16 and 32 bits have in common.
#pragma once
#include <algorithm>
#include <limits>

#include "vector.hpp"

namespace emulation {

using u16 = std::uint16_t;
using i16 = std::int16_t;
using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

// Sums and differences that stay within their type where the instruction clamps. f is exact.
template <class T, auto f>
void limited_sum(wave& w, const instruction& i) {
  const source<T> a(w, i, 1), b(w, i, 2);
  std::array<T, most_lanes> results;
  for (int l = 0; l < most_lanes; ++l) {
    const i64 exact = f(i64{a.values[l]}, i64{b.values[l]});
    results[l] = static_cast<T>(
        i.clamps ? std::clamp<i64>(exact, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()) : exact);
  }
  write_result(w, i, i.operands[0], results, true);
}
inline constexpr auto plus = [](i64 a, i64 b) { return a + b; };
inline constexpr auto minus = [](i64 a, i64 b) { return a - b; };
inline constexpr auto from = [](i64 a, i64 b) { return b - a; };

template <class T>
void select(wave& w, const instruction& i) {  // v_cndmask
  const source<T> a(w, i, 1), b(w, i, 2);
  const u64 mask =
      scalar_mask(w, i.operands_given > 3 ? i.operands[3] : operand{operand_kind::scalar, 2, part::whole, 0, vcc, 0});
  std::array<T, most_lanes> results;
  const auto changed = [&](int n, T x) {
    const auto m = i.operands[n].modifiers;
    const T sign = static_cast<T>(T{1} << (8 * sizeof(T) - 1));
    if (m & absolute) x = static_cast<T>(x & ~sign);
    if (m & negated) x = static_cast<T>(x ^ sign);
    return x;
  };
  for (int l = 0; l < most_lanes; ++l) results[l] = mask >> l & 1 ? changed(2, b.values[l]) : changed(1, a.values[l]);
  write_result(w, i, i.operands[0], results);
}

}  // namespace emulation
