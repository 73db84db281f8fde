// Arithmetic of the scalar unit.
#include <algorithm>
#include <limits>

#include "operations.hpp"
#include "vector.hpp"

namespace emulation {

namespace {

using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

u32 low(const wave& w, const instruction& i, int n) { return scalar(w, i.operands[n]); }
u64 wide(const wave& w, const instruction& i, int n) { return scalar_pair(w, i.operands[n]); }

// result = f(a, b), scc = g(a, b, result)
template <auto f, auto g>
void binary(wave& w, const instruction& i) {
  const u32 a = low(w, i, 1), b = low(w, i, 2);
  const u32 r = f(a, b);
  w.scc = g(a, b, r);
  set_scalar(w, i.operands[0], r);
}
template <auto f>
void binary_keeping(wave& w, const instruction& i) {  // scc stays
  set_scalar(w, i.operands[0], f(low(w, i, 1), low(w, i, 2)));
}
template <auto f>
void unary(wave& w, const instruction& i) {
  set_scalar(w, i.operands[0], f(low(w, i, 1)));
}
template <auto f>
void logic(wave& w, const instruction& i) {
  const u32 r = f(low(w, i, 1), low(w, i, 2));
  w.scc = r != 0;
  set_scalar(w, i.operands[0], r);
}
template <auto f>
void wide_logic(wave& w, const instruction& i) {
  const u64 r = f(wide(w, i, 1), wide(w, i, 2));
  w.scc = r != 0;
  set_scalar_pair(w, i.operands[0], r);
}
template <auto f>
void unary_logic(wave& w, const instruction& i) {
  const u32 r = f(low(w, i, 1));
  w.scc = r != 0;
  set_scalar(w, i.operands[0], r);
}
template <auto f>
void wide_unary_logic(wave& w, const instruction& i) {
  const u64 r = f(wide(w, i, 1));
  w.scc = r != 0;
  set_scalar_pair(w, i.operands[0], r);
}
template <auto f>
void float_binary(wave& w, const instruction& i) {
  set_scalar(w, i.operands[0], bits_of(f(to_float(low(w, i, 1)), to_float(low(w, i, 2)))));
}
// operands: result, a, b and c (c is the result for s_fmac)
template <int third>
void float_fused(wave& w, const instruction& i) {
  set_scalar(w, i.operands[0],
             bits_of(std::fma(to_float(low(w, i, 1)), to_float(low(w, i, 2)), to_float(low(w, i, third)))));
}
void select_scalar(wave& w, const instruction& i) { set_scalar(w, i.operands[0], w.scc ? low(w, i, 1) : low(w, i, 2)); }
void select_pair(wave& w, const instruction& i) {
  set_scalar_pair(w, i.operands[0], w.scc ? wide(w, i, 1) : wide(w, i, 2));
}
void move_if(wave& w, const instruction& i) {
  if (w.scc) set_scalar(w, i.operands[0], low(w, i, 1));
}
u32 bit_field(u32 a, u32 b) {
  const u32 offset = b & 31, width = b >> 16 & 127;
  return width >= 32 ? a >> offset : (a >> offset) & ((u32{1} << width) - 1);
}
u32 signed_bit_field(u32 a, u32 b) {
  const u32 width = b >> 16 & 127;
  if (!width) return 0;
  if (width >= 32) return static_cast<u32>(static_cast<i32>(a) >> (b & 31));
  return static_cast<u32>(static_cast<i32>(bit_field(a, b) << (32 - width)) >> (32 - width));
}

void add_carry(wave& w, const instruction& i) {
  const u64 r = u64{low(w, i, 1)} + low(w, i, 2) + w.scc;
  w.scc = r >> 32;
  set_scalar(w, i.operands[0], static_cast<u32>(r));
}
void subtract_borrow(wave& w, const instruction& i) {
  const u64 r = u64{low(w, i, 1)} - low(w, i, 2) - w.scc;
  w.scc = r >> 32 & 1;
  set_scalar(w, i.operands[0], static_cast<u32>(r));
}
template <auto f>
void wide_shift(wave& w, const instruction& i) {
  const u64 r = f(wide(w, i, 1), low(w, i, 2));
  w.scc = r != 0;
  set_scalar_pair(w, i.operands[0], r);
}
template <auto f>
void wide_sum(wave& w, const instruction& i) {
  set_scalar_pair(w, i.operands[0], f(wide(w, i, 1), wide(w, i, 2)));
}
u64 wide_field(u64 a, u32 b) {
  const u32 offset = b & 63, width = b >> 16 & 127;
  return width >= 64 ? a >> offset : (a >> offset) & ((u64{1} << width) - 1);
}
u64 signed_wide_field(u64 a, u32 b) {
  const u32 width = b >> 16 & 127;
  if (!width) return 0;
  if (width >= 64) return static_cast<u64>(static_cast<i64>(a) >> (b & 63));
  return static_cast<u64>(static_cast<i64>(wide_field(a, b) << (64 - width)) >> (64 - width));
}
void move_pair(wave& w, const instruction& i) { set_scalar_pair(w, i.operands[0], wide(w, i, 1)); }
void mask_pair(wave& w, const instruction& i) {
  set_scalar_pair(w, i.operands[0], ((u64{1} << (low(w, i, 1) & 63)) - 1) << (low(w, i, 2) & 63));
}
void count_pair(wave& w, const instruction& i) {
  const auto r = static_cast<u32>(std::popcount(wide(w, i, 1)));
  w.scc = r != 0;
  set_scalar(w, i.operands[0], r);
}
void first_of_pair(wave& w, const instruction& i) {
  const u64 a = wide(w, i, 1);
  set_scalar(w, i.operands[0], a ? static_cast<u32>(std::countr_zero(a)) : ~u32{0});
}
void least_signed(wave& w, const instruction& i) {
  w.scc = static_cast<i32>(low(w, i, 1)) < static_cast<i32>(low(w, i, 2));
  set_scalar(w, i.operands[0], w.scc ? low(w, i, 1) : low(w, i, 2));
}
void greatest_signed(wave& w, const instruction& i) {
  w.scc = static_cast<i32>(low(w, i, 1)) > static_cast<i32>(low(w, i, 2));
  set_scalar(w, i.operands[0], w.scc ? low(w, i, 1) : low(w, i, 2));
}
u32 leading_sign_bits(u32 a) {
  const u32 x = a ^ static_cast<u32>(static_cast<i32>(a) >> 31);
  return x ? static_cast<u32>(std::countl_zero(x)) : ~u32{0};
}
u32 to_signed(float x) {
  if (x != x) return 0;
  return static_cast<u32>(static_cast<i32>(std::clamp(static_cast<double>(x), -2147483648.0, 2147483647.0)));
}
u32 to_unsigned(float x) { return x > 0 ? static_cast<u32>(std::min(static_cast<double>(x), 4294967295.0)) : 0; }

// The forms with a 16-bit constant have the register as result and as first source.
void add_constant(wave& w, const instruction& i) {
  const u32 a = low(w, i, 0), b = low(w, i, 1), r = a + b;
  w.scc = ((a ^ r) & (b ^ r)) >> 31;
  set_scalar(w, i.operands[0], r);
}
void multiply_constant(wave& w, const instruction& i) { set_scalar(w, i.operands[0], low(w, i, 0) * low(w, i, 1)); }
void set_bit(wave& w, const instruction& i) {
  set_scalar(w, i.operands[0], low(w, i, 0) | u32{1} << (low(w, i, 1) & 31));
}
void clear_bit(wave& w, const instruction& i) {
  set_scalar(w, i.operands[0], low(w, i, 0) & ~(u32{1} << (low(w, i, 1) & 31)));
}
template <int shift>
void shift_add(wave& w, const instruction& i) {
  const u64 r = (u64{low(w, i, 1)} << shift) + low(w, i, 2);
  w.scc = r >> 32;
  set_scalar(w, i.operands[0], static_cast<u32>(r));
}
void absolute_value(wave& w, const instruction& i) {
  const auto a = static_cast<i32>(low(w, i, 1));
  const u32 r = a < 0 ? 0 - static_cast<u32>(a) : static_cast<u32>(a);
  w.scc = r != 0;
  set_scalar(w, i.operands[0], r);
}

constexpr auto is_not_zero = [](u32, u32, u32 r) { return r != 0; };

}  // namespace

#define SUMS(add, sub, add_unsigned, sub_unsigned)                                                           \
  {add, binary<[](u32 a, u32 b) { return a + b; },                                                           \
               [](u32 a, u32 b, u32 r) { return static_cast<bool>(((a ^ r) & (b ^ r)) >> 31); }>},           \
      {sub, binary<[](u32 a, u32 b) { return a - b; },                                                       \
                   [](u32 a, u32 b, u32 r) { return static_cast<bool>(((a ^ b) & (a ^ r)) >> 31); }>},       \
      {add_unsigned, binary<[](u32 a, u32 b) { return a + b; }, [](u32 a, u32, u32 r) { return r < a; }>}, { \
    sub_unsigned, binary<[](u32 a, u32 b) { return a - b; }, [](u32 a, u32 b, u32) { return a < b; }>        \
  }

const std::vector<operation> scalar_operations = {
    {"s_mov_b32", unary<[](u32 a) { return a; }>},
    {"s_movk_i32", unary<[](u32 a) { return a; }>},
    {"s_mov_b64", move_pair},
    {"s_cmov_b32", move_if},
    {"s_cmovk_i32", move_if},
    {"s_cselect_b32", select_scalar},
    {"s_cselect_b64", select_pair},
    SUMS("s_add_i32", "s_sub_i32", "s_add_u32", "s_sub_u32"),
    SUMS("s_add_co_i32", "s_sub_co_i32", "s_add_co_u32", "s_sub_co_u32"),
    {"s_addc_u32", add_carry},
    {"s_add_co_ci_u32", add_carry},
    {"s_subb_u32", subtract_borrow},
    {"s_sub_co_ci_u32", subtract_borrow},
    {"s_addk_i32", add_constant},
    {"s_addk_co_i32", add_constant},
    {"s_mulk_i32", multiply_constant},
    {"s_add_nc_u64", wide_sum<[](u64 a, u64 b) { return a + b; }>},
    {"s_add_u64", wide_sum<[](u64 a, u64 b) { return a + b; }>},
    {"s_sub_nc_u64", wide_sum<[](u64 a, u64 b) { return a - b; }>},
    {"s_mul_u64", wide_sum<[](u64 a, u64 b) { return a * b; }>},
    {"s_mul_i32", binary_keeping<[](u32 a, u32 b) { return a * b; }>},
    {"s_mul_hi_u32", binary_keeping<[](u32 a, u32 b) { return static_cast<u32>(u64{a} * b >> 32); }>},
    {"s_mul_hi_i32", binary_keeping<[](u32 a, u32 b) {
       return static_cast<u32>(i64{static_cast<i32>(a)} * static_cast<i32>(b) >> 32);
     }>},
    {"s_lshl1_add_u32", shift_add<1>},
    {"s_lshl2_add_u32", shift_add<2>},
    {"s_lshl3_add_u32", shift_add<3>},
    {"s_lshl4_add_u32", shift_add<4>},
    {"s_and_b32", logic<[](u32 a, u32 b) { return a & b; }>},
    {"s_or_b32", logic<[](u32 a, u32 b) { return a | b; }>},
    {"s_xor_b32", logic<[](u32 a, u32 b) { return a ^ b; }>},
    {"s_andn2_b32", logic<[](u32 a, u32 b) { return a & ~b; }>},
    {"s_and_not1_b32", logic<[](u32 a, u32 b) { return a & ~b; }>},
    {"s_orn2_b32", logic<[](u32 a, u32 b) { return a | ~b; }>},
    {"s_or_not1_b32", logic<[](u32 a, u32 b) { return a | ~b; }>},
    {"s_nand_b32", logic<[](u32 a, u32 b) { return ~(a & b); }>},
    {"s_nor_b32", logic<[](u32 a, u32 b) { return ~(a | b); }>},
    {"s_xnor_b32", logic<[](u32 a, u32 b) { return ~(a ^ b); }>},
    {"s_and_b64", wide_logic<[](u64 a, u64 b) { return a & b; }>},
    {"s_or_b64", wide_logic<[](u64 a, u64 b) { return a | b; }>},
    {"s_xor_b64", wide_logic<[](u64 a, u64 b) { return a ^ b; }>},
    {"s_andn2_b64", wide_logic<[](u64 a, u64 b) { return a & ~b; }>},
    {"s_and_not1_b64", wide_logic<[](u64 a, u64 b) { return a & ~b; }>},
    {"s_orn2_b64", wide_logic<[](u64 a, u64 b) { return a | ~b; }>},
    {"s_or_not1_b64", wide_logic<[](u64 a, u64 b) { return a | ~b; }>},
    {"s_nand_b64", wide_logic<[](u64 a, u64 b) { return ~(a & b); }>},
    {"s_nor_b64", wide_logic<[](u64 a, u64 b) { return ~(a | b); }>},
    {"s_xnor_b64", wide_logic<[](u64 a, u64 b) { return ~(a ^ b); }>},
    {"s_lshl_b32", logic<[](u32 a, u32 b) { return a << (b & 31); }>},
    {"s_lshr_b32", logic<[](u32 a, u32 b) { return a >> (b & 31); }>},
    {"s_ashr_i32", logic<[](u32 a, u32 b) { return static_cast<u32>(static_cast<i32>(a) >> (b & 31)); }>},
    {"s_lshl_b64", wide_shift<[](u64 a, u32 b) { return a << (b & 63); }>},
    {"s_lshr_b64", wide_shift<[](u64 a, u32 b) { return a >> (b & 63); }>},
    {"s_ashr_i64", wide_shift<[](u64 a, u32 b) { return static_cast<u64>(static_cast<i64>(a) >> (b & 63)); }>},
    {"s_bfe_u32", logic<[](u32 a, u32 b) { return bit_field(a, b); }>},
    {"s_bfe_i32", logic<[](u32 a, u32 b) { return signed_bit_field(a, b); }>},
    {"s_bfe_u64", wide_shift<[](u64 a, u32 b) { return wide_field(a, b); }>},
    {"s_bfe_i64", wide_shift<[](u64 a, u32 b) { return signed_wide_field(a, b); }>},
    {"s_bfm_b32", binary_keeping<[](u32 a, u32 b) { return ((u32{1} << (a & 31)) - 1) << (b & 31); }>},
    {"s_bfm_b64", mask_pair},
    {"s_not_b32", unary_logic<[](u32 a) { return ~a; }>},
    {"s_not_b64", wide_unary_logic<[](u64 a) { return ~a; }>},
    {"s_brev_b32", unary<[](u32 a) { return __builtin_bitreverse32(a); }>},
    {"s_bcnt1_i32_b32", unary_logic<[](u32 a) { return static_cast<u32>(std::popcount(a)); }>},
    {"s_bcnt1_i32_b64", count_pair},
    {"s_ff1_i32_b32", unary<[](u32 a) { return a ? static_cast<u32>(std::countr_zero(a)) : ~u32{0}; }>},
    {"s_ctz_i32_b32", unary<[](u32 a) { return a ? static_cast<u32>(std::countr_zero(a)) : ~u32{0}; }>},
    {"s_ff1_i32_b64", first_of_pair},
    {"s_ctz_i32_b64", first_of_pair},
    {"s_flbit_i32_b32", unary<[](u32 a) { return a ? static_cast<u32>(std::countl_zero(a)) : ~u32{0}; }>},
    {"s_flbit_i32", unary<[](u32 a) { return leading_sign_bits(a); }>},
    {"s_cls_i32", unary<[](u32 a) { return leading_sign_bits(a); }>},
    {"s_clz_i32_u32", unary<[](u32 a) { return a ? static_cast<u32>(std::countl_zero(a)) : ~u32{0}; }>},
    {"s_sext_i32_i8", unary<[](u32 a) { return static_cast<u32>(static_cast<std::int8_t>(a)); }>},
    {"s_sext_i32_i16", unary<[](u32 a) { return static_cast<u32>(static_cast<std::int16_t>(a)); }>},
    {"s_abs_i32", absolute_value},
    {"s_bitset1_b32", set_bit},
    {"s_bitset0_b32", clear_bit},
    {"s_pack_ll_b32_b16", binary_keeping<[](u32 a, u32 b) { return (a & 0xFFFF) | b << 16; }>},
    {"s_pack_lh_b32_b16", binary_keeping<[](u32 a, u32 b) { return (a & 0xFFFF) | (b & 0xFFFF0000); }>},
    {"s_pack_hh_b32_b16", binary_keeping<[](u32 a, u32 b) { return a >> 16 | (b & 0xFFFF0000); }>},
    {"s_pack_hl_b32_b16", binary_keeping<[](u32 a, u32 b) { return a >> 16 | b << 16; }>},
    {"s_min_i32", least_signed},
    {"s_max_i32", greatest_signed},
    {"s_min_u32", binary<[](u32 a, u32 b) { return std::min(a, b); }, [](u32 a, u32 b, u32) { return a < b; }>},
    {"s_max_u32", binary<[](u32 a, u32 b) { return std::max(a, b); }, [](u32 a, u32 b, u32) { return a > b; }>},
    {"s_absdiff_i32",
     binary<[](u32 a, u32 b) { return static_cast<i32>(a) > static_cast<i32>(b) ? a - b : b - a; }, is_not_zero>},
    {"s_add_f32", float_binary<[](float a, float b) { return a + b; }>},
    {"s_sub_f32", float_binary<[](float a, float b) { return a - b; }>},
    {"s_mul_f32", float_binary<[](float a, float b) { return a * b; }>},
    {"s_max_num_f32", float_binary<[](float a, float b) { return std::fmax(a, b); }>},
    {"s_min_num_f32", float_binary<[](float a, float b) { return std::fmin(a, b); }>},
    {"s_max_f32", float_binary<[](float a, float b) { return std::fmax(a, b); }>},
    {"s_min_f32", float_binary<[](float a, float b) { return std::fmin(a, b); }>},
    {"s_maximum_f32", float_binary<[](float a, float b) { return a != a   ? a
                                                                 : b != b ? b
                                                                          : std::fmax(a, b); }>},
    {"s_minimum_f32", float_binary<[](float a, float b) { return a != a   ? a
                                                                 : b != b ? b
                                                                          : std::fmin(a, b); }>},
    {"s_fmac_f32", float_fused<0>},
    {"s_fmaak_f32", float_fused<3>},
    {"s_fmamk_f32", float_fused<3>},
    {"s_cvt_f32_f16", unary<[](u32 a) { return bits_of(static_cast<float>(to_half(a))); }>},
    {"s_cvt_hi_f32_f16", unary<[](u32 a) { return bits_of(static_cast<float>(to_half(a >> 16))); }>},
    {"s_cvt_f16_f32", unary<[](u32 a) { return bits_of(static_cast<half>(to_float(a))); }>},
    {"s_cvt_f32_i32", unary<[](u32 a) { return bits_of(static_cast<float>(static_cast<i32>(a))); }>},
    {"s_cvt_f32_u32", unary<[](u32 a) { return bits_of(static_cast<float>(a)); }>},
    {"s_floor_f32", unary<[](u32 a) { return bits_of(std::floor(to_float(a))); }>},
    {"s_ceil_f32", unary<[](u32 a) { return bits_of(std::ceil(to_float(a))); }>},
    {"s_trunc_f32", unary<[](u32 a) { return bits_of(std::trunc(to_float(a))); }>},
    {"s_rndne_f32", unary<[](u32 a) { return bits_of(std::nearbyint(to_float(a))); }>},
    {"s_cvt_i32_f32", unary<[](u32 a) { return to_signed(to_float(a)); }>},
    {"s_cvt_u32_f32", unary<[](u32 a) { return to_unsigned(to_float(a)); }>},
    {"v_s_sqrt_f32", unary<[](u32 a) { return bits_of(std::sqrt(to_float(a))); }>},
    {"v_s_rcp_f32", unary<[](u32 a) { return bits_of(1.0F / to_float(a)); }>},
    {"v_s_rsq_f32", unary<[](u32 a) { return bits_of(1.0F / std::sqrt(to_float(a))); }>},
    {"v_s_exp_f32", unary<[](u32 a) { return bits_of(std::exp2(to_float(a))); }>},
    {"v_s_log_f32", unary<[](u32 a) { return bits_of(std::log2(to_float(a))); }>},
};

}  // namespace emulation
