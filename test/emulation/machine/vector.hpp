// Makes an operation of a wave from a function of numbers: `each<f>` applies f to the lanes' sources and writes the
// result. The types of f's parameters say how a source is read: 32 bits, 64 bits (two registers), or the 16 bits that
// are selected.
#pragma once
#include <cmath>
#include <tuple>
#include <type_traits>
#include <utility>

#include "wave.hpp"

namespace emulation {

using half = _Float16;
struct bfloat {
  std::uint16_t bits;
  operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

inline half to_half(std::uint32_t x) { return std::bit_cast<half>(static_cast<std::uint16_t>(x)); }
inline std::uint32_t bits_of(half x) { return std::bit_cast<std::uint16_t>(x); }
inline float to_float(std::uint32_t x) { return std::bit_cast<float>(x); }
inline std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

// Rounds to the nearest bfloat, to even in a tie.
inline std::uint32_t rounded_bfloat(float x) {
  std::uint32_t b = bits_of(x);
  if (x != x) return (b >> 16) | 0x40;
  return (b + 0x7FFF + (b >> 16 & 1)) >> 16;
}

template <class T>
constexpr bool is_number = std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, half>;

template <class T>
T with_modifiers(T x, std::uint8_t modifiers) {
  if constexpr (is_number<T>) {
    using bits = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                    std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
    constexpr bits sign = static_cast<bits>(bits{1} << (8 * sizeof(T) - 1));
    bits b = std::bit_cast<bits>(x);
    if (modifiers & absolute) b = static_cast<bits>(b & ~sign);
    if (modifiers & negated) b = static_cast<bits>(b ^ sign);
    return std::bit_cast<T>(b);
  }
  return x;
}

template <class T>
struct source {
  alignas(64) std::array<T, most_lanes> values;

  source(const wave& w, const instruction& i, int n) {
    alignas(64) lanes low;
    read_lanes(w, i, n, 0, low);
    if constexpr (sizeof(T) == 8) {
      alignas(64) lanes high;
      read_lanes(w, i, n, 1, high);
      for (int l = 0; l < most_lanes; ++l)
        values[l] = std::bit_cast<T>(low[l] | static_cast<std::uint64_t>(high[l]) << 32);
    } else if constexpr (sizeof(T) == 4) {
      for (int l = 0; l < most_lanes; ++l) values[l] = std::bit_cast<T>(low[l]);
    } else {
      // op_sel of encodings in which registers have no halves of their own
      const bool high_half = i.operands[n].selected == part::whole && (i.select_low >> (n - 1) & 1);
      for (int l = 0; l < most_lanes; ++l)
        values[l] = std::bit_cast<T>(static_cast<std::uint16_t>(high_half ? low[l] >> 16 : low[l]));
    }
    if (const auto m = i.operands[n].modifiers & (negated | absolute); is_number<T> && m)
      for (T& x : values) x = with_modifiers(x, static_cast<std::uint8_t>(m));
  }
};

template <class T>
T limited(const instruction& i, T x) {
  if constexpr (is_number<T>) {
    constexpr std::array<float, 4> factors = {1, 2, 4, 0.5F};
    if (i.output_factor) x = static_cast<T>(x * static_cast<T>(factors[i.output_factor]));
    if (i.clamps) x = x > static_cast<T>(0) ? (x < static_cast<T>(1) ? x : static_cast<T>(1)) : static_cast<T>(0);
  }
  return x;
}

template <class R>
void write_result(wave& w, const instruction& i, const operand& to, std::array<R, most_lanes>& results,
                  bool clamps_itself = false) {
  if (i.clamps && !is_number<R> && !clamps_itself) throw refusal("clamp of an integer");
  if (i.clamps || i.output_factor)
    for (R& x : results) x = limited(i, x);
  alignas(64) lanes low;
  if constexpr (sizeof(R) == 8) {
    alignas(64) lanes high;
    for (int l = 0; l < most_lanes; ++l) {
      const auto b = std::bit_cast<std::uint64_t>(results[l]);
      low[l] = static_cast<std::uint32_t>(b);
      high[l] = static_cast<std::uint32_t>(b >> 32);
    }
    write_lanes(w, i, to, 1, high);
  } else if constexpr (sizeof(R) == 4) {
    for (int l = 0; l < most_lanes; ++l) low[l] = std::bit_cast<std::uint32_t>(results[l]);
  } else {
    for (int l = 0; l < most_lanes; ++l) low[l] = std::bit_cast<std::uint16_t>(results[l]);
    // op_sel bit 3: the result goes to the high half, and the low one stays.
    if (to.selected == part::whole && i.select_low >> 3 & 1) {
      operand high = to;
      high.selected = part::high_half;
      instruction keeping = i;
      keeping.preserves = true;
      return write_lanes(w, keeping, high, 0, low);
    }
  }
  write_lanes(w, i, to, 0, low);
}

template <class F>
struct signature : signature<decltype(&F::operator())> {};
template <class C, class R, class... A>
struct signature<R (C::*)(A...) const> {
  template <class F, std::size_t... N>
  static void run(wave& w, const instruction& i, F f, std::index_sequence<N...>) {
    const std::tuple<source<A>...> sources{source<A>(w, i, static_cast<int>(N) + 1)...};
    alignas(64) std::array<R, most_lanes> results;
    for (int l = 0; l < most_lanes; ++l) results[l] = f(std::get<N>(sources).values[l]...);
    write_result(w, i, i.operands[0], results);
  }
  template <class F, std::size_t... N>
  static std::uint64_t compare(const wave& w, const instruction& i, F f, int first, std::index_sequence<N...>) {
    const std::tuple<source<A>...> sources{source<A>(w, i, static_cast<int>(N) + first)...};
    std::uint64_t mask = 0;
    for (int l = 0; l < most_lanes; ++l) mask |= static_cast<std::uint64_t>(f(std::get<N>(sources).values[l]...)) << l;
    return mask;
  }
  using places = std::index_sequence_for<A...>;
};

// result = f(sources), operands 1, 2, ...
template <auto f>
void each(wave& w, const instruction& i) {
  using s = signature<decltype(f)>;
  s::run(w, i, f, typename s::places{});
}

// The lanes for which f holds, to operand 0.
template <auto f>
void compare(wave& w, const instruction& i) {
  using s = signature<decltype(f)>;
  set_scalar_mask(w, i.operands[0], s::compare(w, i, f, 1, typename s::places{}) & w.active());
}

// The same to EXEC. Where there is a result operand (before RDNA), it gets the mask too.
template <auto f>
void compare_exec(wave& w, const instruction& i) {
  using s = signature<decltype(f)>;
  const bool has_result = i.operands_given == 3;
  const auto mask = s::compare(w, i, f, has_result ? 1 : 0, typename s::places{}) & w.active();
  if (has_result) set_scalar_mask(w, i.operands[0], mask);
  w.set_mask(exec, mask);
}

}  // namespace emulation
