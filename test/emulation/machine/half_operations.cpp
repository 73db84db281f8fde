// Vector operations on f16, on two numbers of 16 bits at a time, and on pairs of f32.
#include <algorithm>
#include <limits>

#include "numbers.hpp"
#include "operations.hpp"

namespace emulation {

namespace {

// fma_mix: each source is a float, or the half of a register that op_sel names where op_sel_hi is set.
float mixed(const instruction& i, int n, const lanes& bits, int lane) {
  float x = i.select_high >> (n - 1) & 1
                ? static_cast<float>(to_half(bits[lane] >> (i.select_low >> (n - 1) & 1 ? 16 : 0)))
                : to_float(bits[lane]);
  // For this encoding decode.py keeps |x| and -x in the operand's modifiers.
  return with_modifiers(x, static_cast<std::uint8_t>(i.operands[n].modifiers & (negated | absolute)));
}
template <part destination>
void fused_mixed(wave& w, const instruction& i) {
  alignas(64) lanes a, b, c;
  read_lanes(w, i, 1, 0, a), read_lanes(w, i, 2, 0, b), read_lanes(w, i, 3, 0, c);
  alignas(64) lanes results;
  for (int l = 0; l < most_lanes; ++l) {
    const float x = limited(i, std::fma(mixed(i, 1, a, l), mixed(i, 2, b, l), mixed(i, 3, c, l)));
    results[l] = destination == part::whole ? bits_of(x) : bits_of(static_cast<half>(x));
  }
  operand to = i.operands[0];
  to.selected = destination;
  instruction keeping = i;
  keeping.preserves = true;
  write_lanes(w, keeping, to, 0, results);
}

// Two halves at a time: op_sel and op_sel_hi select the halves of the sources for the low and the high result.
template <auto f, int sources, class Bits = half>
void packed(wave& w, const instruction& i) {
  std::array<lanes, 3> s;
  for (int n = 0; n < sources; ++n) read_lanes(w, i, n + 1, 0, s[n]);
  alignas(64) lanes results;
  for (int l = 0; l < most_lanes; ++l) {
    std::uint32_t both = 0;
    for (int h = 0; h < 2; ++h) {
      std::array<std::uint16_t, 3> x{};
      const std::uint8_t from = h ? i.select_high : i.select_low, sign = h ? i.negate_high : i.negate_low;
      for (int n = 0; n < sources; ++n) {
        x[n] = static_cast<std::uint16_t>(from >> n & 1 ? s[n][l] >> 16 : s[n][l]);
        if (sign >> n & 1) x[n] ^= 0x8000;
      }
      const auto number = [&](int n) { return std::bit_cast<Bits>(x[n]); };
      Bits r;
      if constexpr (sources == 1) r = f(number(0));
      else if constexpr (sources == 2) r = f(number(0), number(1));
      else r = f(number(0), number(1), number(2));
      both |= static_cast<std::uint32_t>(std::bit_cast<std::uint16_t>(limited(i, r))) << (16 * h);
    }
    results[l] = both;
  }
  write_lanes(w, i, i.operands[0], 0, results);
}

// The same for pairs of floats in two registers.
template <auto f, int sources>
void packed_float(wave& w, const instruction& i) {
  std::array<std::array<lanes, 2>, 3> s;
  for (int n = 0; n < sources; ++n)
    for (std::uint32_t h = 0; h < 2; ++h) {
      if (h && i.operands[n + 1].registers < 2 && i.operands[n + 1].kind != operand_kind::constant) s[n][1] = s[n][0];
      else read_lanes(w, i, n + 1, h, s[n][h]);
    }
  std::array<lanes, 2> results;
  for (int h = 0; h < 2; ++h) {
    const std::uint8_t from = h ? i.select_high : i.select_low, sign = h ? i.negate_high : i.negate_low;
    for (int l = 0; l < most_lanes; ++l) {
      std::array<float, 3> x{};
      for (int n = 0; n < sources; ++n) {
        x[n] = to_float(s[n][from >> n & 1][l]);
        if (sign >> n & 1) x[n] = -x[n];
      }
      float r;
      if constexpr (sources == 2) r = f(x[0], x[1]);
      else r = f(x[0], x[1], x[2]);
      results[h][l] = bits_of(limited(i, r));
    }
  }
  write_lanes(w, i, i.operands[0], 0, results[0]);
  write_lanes(w, i, i.operands[0], 1, results[1]);
}

void packed_move(wave& w, const instruction& i) {
  alignas(64) lanes low, high;
  read_lanes(w, i, 1, i.select_low & 1, low);
  read_lanes(w, i, 2, i.select_low >> 1 & 1, high);
  write_lanes(w, i, i.operands[0], 0, low);
  write_lanes(w, i, i.operands[0], 1, high);
}

void accumulate_pairs(wave& w, const instruction& i) {  // v_dot2c_f32_f16
  alignas(64) lanes a, b;
  read_lanes(w, i, 1, 0, a), read_lanes(w, i, 2, 0, b);
  const source<float> c(w, i, 0);
  std::array<float, most_lanes> results;
  for (int l = 0; l < most_lanes; ++l)
    results[l] = static_cast<float>(to_half(a[l])) * static_cast<float>(to_half(b[l])) +
                 static_cast<float>(to_half(a[l] >> 16)) * static_cast<float>(to_half(b[l] >> 16)) + c.values[l];
  write_result(w, i, i.operands[0], results);
}
template <bool is_bfloat>
float dot2(std::uint32_t a, std::uint32_t b, float c) {
  const auto number = [](std::uint32_t x) { return is_bfloat ? to_float(x << 16) : static_cast<float>(to_half(x)); };
  return number(a) * number(b) + (number(a >> 16) * number(b >> 16) + c);
}

}  // namespace

const std::vector<operation> half_operations = {
    {"v_add_f16", each<[](half a, half b) { return static_cast<half>(a + b); }>},
    {"v_sub_f16", each<[](half a, half b) { return static_cast<half>(a - b); }>},
    {"v_subrev_f16", each<[](half a, half b) { return static_cast<half>(b - a); }>},
    {"v_mul_f16", each<[](half a, half b) { return static_cast<half>(a * b); }>},
    {"v_fma_f16", each<[](half a, half b, half c) { return fused(a, b, c); }>},
    {"v_fmac_f16", accumulate<half>},
    {"v_fmaak_f16", each<[](half a, half b, half c) { return fused(a, b, c); }>},
    {"v_fmamk_f16", each<[](half a, half b, half c) { return fused(a, b, c); }>},
    {"v_max_f16", each<[](half a, half b) { return greatest(a, b); }>},
    {"v_min_f16", each<[](half a, half b) { return least(a, b); }>},
    {"v_max_num_f16", each<[](half a, half b) { return greatest(a, b); }>},
    {"v_min_num_f16", each<[](half a, half b) { return least(a, b); }>},
    {"v_maximum_f16", each<[](half a, half b) { return maximum(a, b); }>},
    {"v_minimum_f16", each<[](half a, half b) { return minimum(a, b); }>},
    {"v_max3_f16", each<[](half a, half b, half c) { return greatest(greatest(a, b), c); }>},
    {"v_min3_f16", each<[](half a, half b, half c) { return least(least(a, b), c); }>},
    {"v_max3_num_f16", each<[](half a, half b, half c) { return greatest(greatest(a, b), c); }>},
    {"v_min3_num_f16", each<[](half a, half b, half c) { return least(least(a, b), c); }>},
    {"v_med3_f16", each<[](half a, half b, half c) { return greatest(least(a, b), least(greatest(a, b), c)); }>},
    {"v_med3_num_f16", each<[](half a, half b, half c) { return greatest(least(a, b), least(greatest(a, b), c)); }>},
    {"v_maximum3_f16", each<[](half a, half b, half c) { return maximum(maximum(a, b), c); }>},
    {"v_minimum3_f16", each<[](half a, half b, half c) { return minimum(minimum(a, b), c); }>},
    {"v_rcp_f16", each<[](half a) { return static_cast<half>(1.0F / static_cast<float>(a)); }>},
    {"v_rsq_f16", each<[](half a) { return static_cast<half>(1.0F / std::sqrt(static_cast<float>(a))); }>},
    {"v_sqrt_f16", each<[](half a) { return static_cast<half>(std::sqrt(static_cast<float>(a))); }>},
    {"v_exp_f16", each<[](half a) { return static_cast<half>(std::exp2(static_cast<float>(a))); }>},
    {"v_log_f16", each<[](half a) { return static_cast<half>(std::log2(static_cast<float>(a))); }>},
    {"v_floor_f16", each<[](half a) { return static_cast<half>(std::floor(static_cast<float>(a))); }>},
    {"v_ceil_f16", each<[](half a) { return static_cast<half>(std::ceil(static_cast<float>(a))); }>},
    {"v_trunc_f16", each<[](half a) { return static_cast<half>(std::trunc(static_cast<float>(a))); }>},
    {"v_rndne_f16", each<[](half a) { return static_cast<half>(std::nearbyint(static_cast<float>(a))); }>},
    {"v_ldexp_f16",
     each<[](half a, std::int16_t b) { return static_cast<half>(std::ldexp(static_cast<float>(a), b)); }>},
    {"v_fma_mix_f32", fused_mixed<part::whole>},
    {"v_fma_mixlo_f16", fused_mixed<part::low_half>},
    {"v_fma_mixhi_f16", fused_mixed<part::high_half>},
    {"v_pk_add_f16", packed<[](half a, half b) { return static_cast<half>(a + b); }, 2>},
    {"v_pk_mul_f16", packed<[](half a, half b) { return static_cast<half>(a * b); }, 2>},
    {"v_pk_fma_f16", packed<[](half a, half b, half c) { return fused(a, b, c); }, 3>},
    {"v_pk_max_f16", packed<[](half a, half b) { return greatest(a, b); }, 2>},
    {"v_pk_min_f16", packed<[](half a, half b) { return least(a, b); }, 2>},
    {"v_pk_max_num_f16", packed<[](half a, half b) { return greatest(a, b); }, 2>},
    {"v_pk_min_num_f16", packed<[](half a, half b) { return least(a, b); }, 2>},
    {"v_pk_maximum_f16", packed<[](half a, half b) { return maximum(a, b); }, 2>},
    {"v_pk_minimum_f16", packed<[](half a, half b) { return minimum(a, b); }, 2>},
    {"v_pk_maximum3_f16", packed<[](half a, half b, half c) { return maximum(maximum(a, b), c); }, 3>},
    {"v_pk_minimum3_f16", packed<[](half a, half b, half c) { return minimum(minimum(a, b), c); }, 3>},
    {"v_pk_add_f32", packed_float<[](float a, float b) { return a + b; }, 2>},
    {"v_pk_mul_f32", packed_float<[](float a, float b) { return a * b; }, 2>},
    {"v_pk_fma_f32", packed_float<[](float a, float b, float c) { return std::fma(a, b, c); }, 3>},
    {"v_pk_mov_b32", packed_move},
    {"v_pk_add_u16",
     packed<[](std::uint16_t a, std::uint16_t b) { return static_cast<std::uint16_t>(a + b); }, 2, std::uint16_t>},
    {"v_pk_sub_u16",
     packed<[](std::uint16_t a, std::uint16_t b) { return static_cast<std::uint16_t>(a - b); }, 2, std::uint16_t>},
    {"v_pk_sub_i16",
     packed<[](std::uint16_t a, std::uint16_t b) { return static_cast<std::uint16_t>(a - b); }, 2, std::uint16_t>},
    {"v_pk_add_i16",
     packed<[](std::uint16_t a, std::uint16_t b) { return static_cast<std::uint16_t>(a + b); }, 2, std::uint16_t>},
    {"v_pk_mul_lo_u16", packed<[](std::uint16_t a, std::uint16_t b) {
       return static_cast<std::uint16_t>(static_cast<std::uint32_t>(a) * b);
     },
                               2, std::uint16_t>},
    {"v_pk_mad_u16", packed<[](std::uint16_t a, std::uint16_t b, std::uint16_t c) {
       return static_cast<std::uint16_t>(static_cast<std::uint32_t>(a) * b + c);
     },
                            3, std::uint16_t>},
    {"v_pk_lshlrev_b16",
     packed<[](std::uint16_t a, std::uint16_t b) { return static_cast<std::uint16_t>(b << (a & 15)); }, 2,
            std::uint16_t>},
    {"v_pk_lshrrev_b16",
     packed<[](std::uint16_t a, std::uint16_t b) { return static_cast<std::uint16_t>(b >> (a & 15)); }, 2,
            std::uint16_t>},
    {"v_pk_ashrrev_i16",
     packed<[](std::int16_t a, std::int16_t b) { return static_cast<std::int16_t>(b >> (a & 15)); }, 2, std::int16_t>},
    {"v_pk_max_i16", packed<[](std::int16_t a, std::int16_t b) { return std::max(a, b); }, 2, std::int16_t>},
    {"v_pk_min_i16", packed<[](std::int16_t a, std::int16_t b) { return std::min(a, b); }, 2, std::int16_t>},
    {"v_pk_max_u16", packed<[](std::uint16_t a, std::uint16_t b) { return std::max(a, b); }, 2, std::uint16_t>},
    {"v_pk_min_u16", packed<[](std::uint16_t a, std::uint16_t b) { return std::min(a, b); }, 2, std::uint16_t>},
    {"v_dot2_f32_f16", each<[](std::uint32_t a, std::uint32_t b, float c) { return dot2<false>(a, b, c); }>},
    {"v_dot2_f32_bf16", each<[](std::uint32_t a, std::uint32_t b, float c) { return dot2<true>(a, b, c); }>},
    {"v_dot2c_f32_f16", accumulate_pairs},
    {"v_dot2acc_f32_f16", accumulate_pairs},
};

}  // namespace emulation
