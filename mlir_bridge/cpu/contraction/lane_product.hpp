// Products of factors of 8 and 16 bits whose neighbours along k are multiplied at a time: a 32-bit lane of each factor
// holds them, the lowest k in the lowest bits, and a step adds their products to the lane's sum.
//
// Four bytes, with sums in i32. Exact for signed and unsigned bytes as long as the sum fits into 32 bits.
//  * AVX-512 VNNI and AVX-VNNI multiply u8 by i8 in one instruction (vpdpbusd).
//  * Other x86-64 processors multiply and add pairs of 16-bit numbers (vpmaddwd), once for the even and once for the
//    odd bytes. vpmaddubsw is not used, because it saturates.
//  * Arm processors multiply bytes of one kind by sdot or udot, and u8 by i8 by usdot (armv8.6-a).
//  * Short vectors and other processors unpack the bytes.
//
// Two bf16, with sums in f32, where AVX512-BF16 has an instruction for it (vdpbf16ps): a fused multiply-add of the
// higher neighbour, then one of the lower. Denormal factors and sums become 0. Short vectors unpack the numbers.
#pragma once

#include <optional>
#include <string_view>

#include "mlir_bridge/codegen/kernel_emitter.hpp"

namespace kiln::cpu {

using namespace codegen;

// Number of bytes in one 32-bit lane.
inline constexpr std::int64_t bytes_of_lane = 4;

struct lane_products {
  // Number of neighbours along k in one lane: four bytes or two bf16.
  std::int64_t neighbours = bytes_of_lane;
  bool left_signed = false, right_signed = false;
  bool x86 = false, vnni = false;
  // The Arm instruction for these factors: "sdot", "udot" or "usdot"; empty if there is none.
  std::string_view arm = {};
  // The instruction of AMX for these factors (matrix_tile.hpp): "tdpbf16ps", "tdpbusd", ...; empty if there is none.
  std::string_view matrix = {};
  // Whether vectors of these factors pay, beside what they are widened to. On processors with AMX, vdpbf16ps has half
  // the throughput of multiply-adds of f32: only matrix registers pay there.
  bool vectors = true;
};

// Returns how to multiply these factors. nullopt unless both are 8-bit integers, or both are bf16 and the target has an
// instruction for them.
std::optional<lane_products> find_lane_products(const target_row& target, element_type left, element_type right);

// Returns how many lanes `depth` neighbours fill; without `products`, there are no lanes and each is a step of its own.
std::int64_t steps_of(const std::optional<lane_products>& products, std::int64_t depth);

// Returns how many neighbours a step has: 1 without `products`.
std::int64_t neighbours_of(const std::optional<lane_products>& products);

// Returns how many registers one vector of a factor takes, apart from the sums.
std::int64_t registers_of_factor(const std::optional<lane_products>& products);

// A factor, converted to the form that is multiplied. `second` is only set for pairs of 16-bit numbers.
struct lane_factor {
  Value first, second;
};
lane_factor split_lanes(code_builder& code, const lane_products& products, Value lanes, bool is_left);
Value add_lane_products(code_builder& code, const lane_products& products, const lane_factor& left,
                        const lane_factor& right, Value sum);

// The type that holds the bits of an element of a factor: code_builder::load() does not convert it.
element_type bits_type(element_type type);

// Loads `lanes` lanes of neighbours of `type` from any address of an element, as i32.
Value load_lanes(code_builder& code, Value pointer, element_type type, std::int64_t lanes = 1);

// Returns the bits of a computed element in the low bits of an i32.
Value bits_of(code_builder& code, Value computed, element_type type);

}  // namespace kiln::cpu
