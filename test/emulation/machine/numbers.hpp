// Functions of numbers that several tables of operations use: minima, maxima and fused multiply-adds.
#pragma once
#include "vector.hpp"

namespace emulation {

// The smaller and the larger of two numbers; if one is NaN, the other one (minimumNumber and maximumNumber of IEEE
// 754).
template <class T>
T least(T a, T b) {
  return a != a ? b : b != b ? a : a < b ? a : b;
}
template <class T>
T greatest(T a, T b) {
  return a != a ? b : b != b ? a : a < b ? b : a;
}
// The same, but NaN if either is (minimum and maximum of IEEE 754).
template <class T>
T minimum(T a, T b) {
  return a != a ? a : b != b ? b : a < b ? a : b;
}
template <class T>
T maximum(T a, T b) {
  return a != a ? a : b != b ? b : a < b ? b : a;
}
inline float fused(float a, float b, float c) { return std::fma(a, b, c); }
inline double fused(double a, double b, double c) { return std::fma(a, b, c); }
// f64 holds the product exactly. The sum is rounded to f64 and then to f16, which differs from one rounding in rare
// ties.
inline half fused(half a, half b, half c) {
  return static_cast<half>(static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c));
}

template <class T>
T median(T a, T b, T c) {
  return greatest(least(a, b), least(greatest(a, b), c));
}

// fmac: the result is also the third source.
template <class T>
void accumulate(wave& w, const instruction& i) {
  const source<T> a(w, i, 1), b(w, i, 2), c(w, i, 0);
  std::array<T, most_lanes> results;
  for (int l = 0; l < most_lanes; ++l) results[l] = fused(a.values[l], b.values[l], c.values[l]);
  write_result(w, i, i.operands[0], results);
}

}  // namespace emulation
