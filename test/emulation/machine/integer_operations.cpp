// Vector operations on integers and bits of 32 and 64 bits.
#include <algorithm>
#include <limits>

#include "operations.hpp"
#include "sums.hpp"

namespace emulation {

namespace {

i64 signed24(u32 x) { return static_cast<i32>(x << 8) >> 8; }
u32 field(u32 x, u32 offset, u32 width) {
  width &= 31;
  return (x >> (offset & 31)) & ((u32{1} << width) - 1);
}
i32 signed_field(u32 x, u32 offset, u32 width) {
  width &= 31;
  if (!width) return 0;
  return static_cast<i32>(field(x, offset, width) << (32 - width)) >> (32 - width);
}

// v_perm_b32: bytes of {a, b} (b's are 0 to 3), signs and constants.
u32 permuted(u32 a, u32 b, u32 selector) {
  const u64 both = static_cast<u64>(a) << 32 | b;
  u32 result = 0;
  for (int n = 0; n < 4; ++n) {
    const u32 s = selector >> (8 * n) & 255;
    u32 byte = 0;
    if (s < 8) byte = static_cast<u32>(both >> (8 * s)) & 255;
    else if (s < 12) byte = both >> (16 * (s - 8) + 15) & 1 ? 255 : 0;
    else byte = s == 12 ? 0 : 255;
    result |= byte << (8 * n);
  }
  return result;
}

u32 truth_table(u32 table, u32 a, u32 b, u32 c) {
  u32 result = 0;
  for (int n = 0; n < 8; ++n)
    if (table >> n & 1) result |= (n & 4 ? a : ~a) & (n & 2 ? b : ~b) & (n & 1 ? c : ~c);
  return result;
}
template <class T>
void bit_operation(wave& w, const instruction& i) {
  const source<T> a(w, i, 1), b(w, i, 2), c(w, i, 3);
  std::array<T, most_lanes> results;
  for (int l = 0; l < most_lanes; ++l)
    results[l] = static_cast<T>(truth_table(i.control, a.values[l], b.values[l], c.values[l]));
  write_result(w, i, i.operands[0], results);
}

// Sums and differences with carries: result, carry, a, b and, for `with_carry`, the carry that comes in. f gives 33
// bits.
template <auto f, bool with_carry>
void carried(wave& w, const instruction& i) {
  const source<u32> a(w, i, 2), b(w, i, 3);
  const u64 in = with_carry ? scalar_mask(w, i.operands[4]) : 0, on = w.active();
  std::array<u32, most_lanes> results;
  u64 out = 0;
  for (int l = 0; l < most_lanes; ++l) {
    const u64 x = f(static_cast<u64>(a.values[l]), static_cast<u64>(b.values[l]), in >> l & 1);
    results[l] = static_cast<u32>(x);
    out |= (x >> 32 & 1) << l;
  }
  write_result(w, i, i.operands[0], results);
  set_scalar_mask(w, i.operands[1], out & on);
}

// v_mad_u64_u32: result, carry, a, b, c
template <class Narrow, class Wide>
void wide_multiply(wave& w, const instruction& i) {
  const source<Narrow> a(w, i, 2), b(w, i, 3);
  const source<u64> c(w, i, 4);
  std::array<u64, most_lanes> results;
  u64 out = 0;
  for (int l = 0; l < most_lanes; ++l) {
    const u64 product = static_cast<u64>(static_cast<Wide>(a.values[l]) * static_cast<Wide>(b.values[l]));
    results[l] = product + c.values[l];
    out |= static_cast<u64>(results[l] < product) << l;
  }
  write_result(w, i, i.operands[0], results);
  set_scalar_mask(w, i.operands[1], out & w.active());
}

// Products of four bytes, which neg_lo calls signed (v_dot4_i32_iu8) or the operation does.
i32 dot4(u32 a, u32 b, i32 c, bool a_signed, bool b_signed) {
  const auto byte = [](u32 x, int n, bool is_signed) {
    return is_signed ? i32{static_cast<std::int8_t>(x >> (8 * n))} : static_cast<i32>(x >> (8 * n) & 255);
  };
  i64 sum = c;
  for (int n = 0; n < 4; ++n) sum += i64{byte(a, n, a_signed)} * byte(b, n, b_signed);
  return static_cast<i32>(sum);
}
void dot4_mixed(wave& w, const instruction& i) {
  const source<u32> a(w, i, 1), b(w, i, 2);
  const source<i32> c(w, i, 3);
  std::array<i32, most_lanes> results;
  for (int l = 0; l < most_lanes; ++l)
    results[l] = dot4(a.values[l], b.values[l], c.values[l], i.negate_low & 1, i.negate_low & 2);
  write_result(w, i, i.operands[0], results);
}
void dot4_accumulated(wave& w, const instruction& i) {  // v_dot4c_i32_i8
  const source<u32> a(w, i, 1), b(w, i, 2);
  const source<i32> c(w, i, 0);
  std::array<i32, most_lanes> results;
  for (int l = 0; l < most_lanes; ++l) results[l] = dot4(a.values[l], b.values[l], c.values[l], true, true);
  write_result(w, i, i.operands[0], results);
}

u32 sum_of_differences(u32 a, u32 b, u32 c) {
  for (int n = 0; n < 4; ++n)
    c += static_cast<u32>(std::abs(static_cast<i32>(a >> (8 * n) & 255) - static_cast<i32>(b >> (8 * n) & 255)));
  return c;
}

void swap(wave& w, const instruction& i) {
  lanes& a = w.vector(i.operands[0]);
  lanes& b = w.vector(i.operands[1]);
  for (int l = 0; l < w.size; ++l)
    if (w.is_active(l)) std::swap(a[l], b[l]);
}

}  // namespace

const std::vector<operation> integer_operations = {
    {"v_mov_b32", each<[](u32 a) { return a; }>},
    {"v_mov_b64", each<[](u64 a) { return a; }>},
    {"v_accvgpr_read_b32", each<[](u32 a) { return a; }>},
    {"v_accvgpr_write_b32", each<[](u32 a) { return a; }>},
    {"v_accvgpr_mov_b32", each<[](u32 a) { return a; }>},
    {"v_swap_b32", swap},
    {"v_add_u32", limited_sum<u32, plus>},
    {"v_add_nc_u32", limited_sum<u32, plus>},
    {"v_add_i32", limited_sum<i32, plus>},
    {"v_add_nc_i32", limited_sum<i32, plus>},
    {"v_sub_u32", limited_sum<u32, minus>},
    {"v_sub_nc_u32", limited_sum<u32, minus>},
    {"v_sub_i32", limited_sum<i32, minus>},
    {"v_sub_nc_i32", limited_sum<i32, minus>},
    {"v_subrev_u32", limited_sum<u32, from>},
    {"v_subrev_nc_u32", limited_sum<u32, from>},
    {"v_add_co_u32", carried<[](u64 a, u64 b, u64) { return a + b; }, false>},
    {"v_sub_co_u32", carried<[](u64 a, u64 b, u64) { return a - b; }, false>},
    {"v_subrev_co_u32", carried<[](u64 a, u64 b, u64) { return b - a; }, false>},
    {"v_add_co_ci_u32", carried<[](u64 a, u64 b, u64 c) { return a + b + c; }, true>},
    {"v_addc_co_u32", carried<[](u64 a, u64 b, u64 c) { return a + b + c; }, true>},
    {"v_sub_co_ci_u32", carried<[](u64 a, u64 b, u64 c) { return a - b - c; }, true>},
    {"v_subb_co_u32", carried<[](u64 a, u64 b, u64 c) { return a - b - c; }, true>},
    {"v_subrev_co_ci_u32", carried<[](u64 a, u64 b, u64 c) { return b - a - c; }, true>},
    {"v_subbrev_co_u32", carried<[](u64 a, u64 b, u64 c) { return b - a - c; }, true>},
    {"v_add3_u32", each<[](u32 a, u32 b, u32 c) { return a + b + c; }>},
    {"v_lshl_add_u32", each<[](u32 a, u32 b, u32 c) { return (a << (b & 31)) + c; }>},
    {"v_add_lshl_u32", each<[](u32 a, u32 b, u32 c) { return (a + b) << (c & 31); }>},
    {"v_lshl_or_b32", each<[](u32 a, u32 b, u32 c) { return (a << (b & 31)) | c; }>},
    {"v_and_or_b32", each<[](u32 a, u32 b, u32 c) { return (a & b) | c; }>},
    {"v_or3_b32", each<[](u32 a, u32 b, u32 c) { return a | b | c; }>},
    {"v_xor3_b32", each<[](u32 a, u32 b, u32 c) { return a ^ b ^ c; }>},
    {"v_xad_u32", each<[](u32 a, u32 b, u32 c) { return (a ^ b) + c; }>},
    {"v_bitop3_b32", bit_operation<u32>},
    {"v_bitop3_b16", bit_operation<u16>},
    {"v_lshl_add_u64", each<[](u64 a, u32 b, u64 c) { return (a << (b & 7)) + c; }>},
    {"v_add_nc_u64", each<[](u64 a, u64 b) { return a + b; }>},
    {"v_and_b32", each<[](u32 a, u32 b) { return a & b; }>},
    {"v_or_b32", each<[](u32 a, u32 b) { return a | b; }>},
    {"v_xor_b32", each<[](u32 a, u32 b) { return a ^ b; }>},
    {"v_xnor_b32", each<[](u32 a, u32 b) { return ~(a ^ b); }>},
    {"v_not_b32", each<[](u32 a) { return ~a; }>},
    {"v_lshlrev_b32", each<[](u32 a, u32 b) { return b << (a & 31); }>},
    {"v_lshrrev_b32", each<[](u32 a, u32 b) { return b >> (a & 31); }>},
    {"v_ashrrev_i32", each<[](u32 a, i32 b) { return b >> (a & 31); }>},
    {"v_lshlrev_b64", each<[](u32 a, u64 b) { return b << (a & 63); }>},
    {"v_lshrrev_b64", each<[](u32 a, u64 b) { return b >> (a & 63); }>},
    {"v_ashrrev_i64", each<[](u32 a, i64 b) { return b >> (a & 63); }>},
    {"v_mul_lo_u32", each<[](u32 a, u32 b) { return a * b; }>},
    {"v_mul_hi_u32", each<[](u32 a, u32 b) { return static_cast<u32>(u64{a} * b >> 32); }>},
    {"v_mul_hi_i32", each<[](i32 a, i32 b) { return static_cast<i32>(i64{a} * b >> 32); }>},
    {"v_mul_u32_u24", each<[](u32 a, u32 b) { return (a & 0xFFFFFF) * (b & 0xFFFFFF); }>},
    {"v_mul_hi_u32_u24", each<[](u32 a, u32 b) { return static_cast<u32>(u64{a & 0xFFFFFF} * (b & 0xFFFFFF) >> 32); }>},
    {"v_mul_i32_i24", each<[](u32 a, u32 b) { return static_cast<u32>(signed24(a) * signed24(b)); }>},
    {"v_mul_hi_i32_i24", each<[](u32 a, u32 b) { return static_cast<u32>(signed24(a) * signed24(b) >> 32); }>},
    {"v_mad_u32_u24", each<[](u32 a, u32 b, u32 c) { return (a & 0xFFFFFF) * (b & 0xFFFFFF) + c; }>},
    {"v_mad_i32_i24", each<[](u32 a, u32 b, u32 c) { return static_cast<u32>(signed24(a) * signed24(b)) + c; }>},
    {"v_mad_u64_u32", wide_multiply<u32, u64>},
    {"v_mad_i64_i32", wide_multiply<i32, i64>},
    {"v_mad_co_u64_u32", wide_multiply<u32, u64>},
    {"v_mad_co_i64_i32", wide_multiply<i32, i64>},
    {"v_min_u32", each<[](u32 a, u32 b) { return std::min(a, b); }>},
    {"v_max_u32", each<[](u32 a, u32 b) { return std::max(a, b); }>},
    {"v_min_i32", each<[](i32 a, i32 b) { return std::min(a, b); }>},
    {"v_max_i32", each<[](i32 a, i32 b) { return std::max(a, b); }>},
    {"v_min3_u32", each<[](u32 a, u32 b, u32 c) { return std::min(std::min(a, b), c); }>},
    {"v_max3_u32", each<[](u32 a, u32 b, u32 c) { return std::max(std::max(a, b), c); }>},
    {"v_min3_i32", each<[](i32 a, i32 b, i32 c) { return std::min(std::min(a, b), c); }>},
    {"v_max3_i32", each<[](i32 a, i32 b, i32 c) { return std::max(std::max(a, b), c); }>},
    {"v_med3_i32", each<[](i32 a, i32 b, i32 c) { return std::max(std::min(a, b), std::min(std::max(a, b), c)); }>},
    {"v_med3_u32", each<[](u32 a, u32 b, u32 c) { return std::max(std::min(a, b), std::min(std::max(a, b), c)); }>},
    {"v_maxmin_i32", each<[](i32 a, i32 b, i32 c) { return std::min(std::max(a, b), c); }>},
    {"v_minmax_i32", each<[](i32 a, i32 b, i32 c) { return std::max(std::min(a, b), c); }>},
    {"v_maxmin_u32", each<[](u32 a, u32 b, u32 c) { return std::min(std::max(a, b), c); }>},
    {"v_minmax_u32", each<[](u32 a, u32 b, u32 c) { return std::max(std::min(a, b), c); }>},
    {"v_bfe_u32", each<[](u32 a, u32 b, u32 c) { return field(a, b, c); }>},
    {"v_bfe_i32", each<[](u32 a, u32 b, u32 c) { return signed_field(a, b, c); }>},
    {"v_bfi_b32", each<[](u32 a, u32 b, u32 c) { return (a & b) | (~a & c); }>},
    {"v_bfm_b32", each<[](u32 a, u32 b) { return ((u32{1} << (a & 31)) - 1) << (b & 31); }>},
    {"v_bfrev_b32", each<[](u32 a) { return __builtin_bitreverse32(a); }>},
    {"v_bcnt_u32_b32", each<[](u32 a, u32 b) { return static_cast<u32>(std::popcount(a)) + b; }>},
    {"v_alignbit_b32", each<[](u32 a, u32 b, u32 c) { return static_cast<u32>((u64{a} << 32 | b) >> (c & 31)); }>},
    {"v_alignbyte_b32",
     each<[](u32 a, u32 b, u32 c) { return static_cast<u32>((u64{a} << 32 | b) >> (8 * (c & 3))); }>},
    {"v_perm_b32", each<[](u32 a, u32 b, u32 c) { return permuted(a, b, c); }>},
    {"v_sad_u8", each<[](u32 a, u32 b, u32 c) { return sum_of_differences(a, b, c); }>},
    {"v_sad_u32", each<[](u32 a, u32 b, u32 c) { return (a > b ? a - b : b - a) + c; }>},
    {"v_ffbh_u32", each<[](u32 a) { return a ? static_cast<u32>(std::countl_zero(a)) : ~u32{0}; }>},
    {"v_clz_i32_u32", each<[](u32 a) { return a ? static_cast<u32>(std::countl_zero(a)) : ~u32{0}; }>},
    {"v_ffbl_b32", each<[](u32 a) { return a ? static_cast<u32>(std::countr_zero(a)) : ~u32{0}; }>},
    {"v_ctz_i32_b32", each<[](u32 a) { return a ? static_cast<u32>(std::countr_zero(a)) : ~u32{0}; }>},
    {"v_ffbh_i32", each<[](u32 a) {
       const u32 x = a ^ static_cast<u32>(static_cast<i32>(a) >> 31);
       return x ? static_cast<u32>(std::countl_zero(x)) : ~u32{0};
     }>},
    {"v_cls_i32", each<[](u32 a) {
       const u32 x = a ^ static_cast<u32>(static_cast<i32>(a) >> 31);
       return x ? static_cast<u32>(std::countl_zero(x)) : ~u32{0};
     }>},
    {"v_cndmask_b32", select<u32>},
    {"v_dot4_i32_i8", each<[](u32 a, u32 b, i32 c) { return dot4(a, b, c, true, true); }>},
    {"v_dot4_u32_u8", each<[](u32 a, u32 b, i32 c) { return dot4(a, b, c, false, false); }>},
    {"v_dot4_i32_iu8", dot4_mixed},
    {"v_dot4c_i32_i8", dot4_accumulated},
};

}  // namespace emulation
