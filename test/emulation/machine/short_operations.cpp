// Vector operations on integers of 16 bits.
#include <algorithm>
#include <limits>

#include "operations.hpp"
#include "sums.hpp"

namespace emulation {

const std::vector<operation> short_operations = {
    {"v_mov_b16", each<[](u16 a) { return a; }>},
    {"v_cndmask_b16", select<u16>},
    {"v_pack_b32_f16", each<[](u16 a, u16 b) { return static_cast<u32>(a) | static_cast<u32>(b) << 16; }>},
    {"v_sat_pk_u8_i16", each<[](u32 a) {
       const auto limit = [](u32 x) { return static_cast<u32>(std::clamp<i32>(static_cast<i16>(x), 0, 255)); };
       return limit(a) | limit(a >> 16) << 8;
     }>},
    {"v_add_u16", limited_sum<u16, plus>},
    {"v_add_nc_u16", limited_sum<u16, plus>},
    {"v_sub_u16", limited_sum<u16, minus>},
    {"v_sub_nc_u16", limited_sum<u16, minus>},
    {"v_add_nc_i16", limited_sum<i16, plus>},
    {"v_sub_nc_i16", limited_sum<i16, minus>},
    {"v_add_i16", limited_sum<i16, plus>},
    {"v_sub_i16", limited_sum<i16, minus>},
    {"v_subrev_u16", limited_sum<u16, from>},
    {"v_mul_lo_u16", each<[](u16 a, u16 b) { return static_cast<u16>(u32{a} * b); }>},
    {"v_mad_u16", each<[](u16 a, u16 b, u16 c) { return static_cast<u16>(u32{a} * b + c); }>},
    {"v_mad_legacy_u16", each<[](u16 a, u16 b, u16 c) { return static_cast<u16>(u32{a} * b + c); }>},
    {"v_mad_i16", each<[](u16 a, u16 b, u16 c) { return static_cast<u16>(u32{a} * b + c); }>},
    {"v_mad_u32_u16", each<[](u16 a, u16 b, u32 c) { return u32{a} * b + c; }>},
    {"v_mad_i32_i16", each<[](i16 a, i16 b, i32 c) { return i32{a} * b + c; }>},
    {"v_and_b16", each<[](u16 a, u16 b) { return static_cast<u16>(a & b); }>},
    {"v_or_b16", each<[](u16 a, u16 b) { return static_cast<u16>(a | b); }>},
    {"v_xor_b16", each<[](u16 a, u16 b) { return static_cast<u16>(a ^ b); }>},
    {"v_not_b16", each<[](u16 a) { return static_cast<u16>(~a); }>},
    {"v_lshlrev_b16", each<[](u16 a, u16 b) { return static_cast<u16>(u32{b} << (a & 15)); }>},
    {"v_lshrrev_b16", each<[](u16 a, u16 b) { return static_cast<u16>(b >> (a & 15)); }>},
    {"v_ashrrev_i16", each<[](u16 a, i16 b) { return static_cast<i16>(b >> (a & 15)); }>},
    {"v_max_i16", each<[](i16 a, i16 b) { return std::max(a, b); }>},
    {"v_min_i16", each<[](i16 a, i16 b) { return std::min(a, b); }>},
    {"v_max_u16", each<[](u16 a, u16 b) { return std::max(a, b); }>},
    {"v_min_u16", each<[](u16 a, u16 b) { return std::min(a, b); }>},
    {"v_max3_u16", each<[](u16 a, u16 b, u16 c) { return std::max(std::max(a, b), c); }>},
    {"v_min3_u16", each<[](u16 a, u16 b, u16 c) { return std::min(std::min(a, b), c); }>},
    {"v_med3_u16", each<[](u16 a, u16 b, u16 c) { return std::max(std::min(a, b), std::min(std::max(a, b), c)); }>},
    {"v_max3_i16", each<[](i16 a, i16 b, i16 c) { return std::max(std::max(a, b), c); }>},
    {"v_min3_i16", each<[](i16 a, i16 b, i16 c) { return std::min(std::min(a, b), c); }>},
    {"v_med3_i16", each<[](i16 a, i16 b, i16 c) { return std::max(std::min(a, b), std::min(std::max(a, b), c)); }>},
    {"v_cvt_i32_i16", each<[](i16 a) { return i32{a}; }>},
    {"v_cvt_u32_u16", each<[](u16 a) { return u32{a}; }>},
    {"v_cvt_pk_i16_i32", each<[](i32 a, i32 b) {
       const auto limit = [](i32 x) { return static_cast<u32>(static_cast<u16>(std::clamp(x, -32768, 32767))); };
       return limit(a) | limit(b) << 16;
     }>},
    {"v_cvt_pk_u16_u32", each<[](u32 a, u32 b) { return std::min(a, 65535U) | std::min(b, 65535U) << 16; }>},
};

}  // namespace emulation
