// Products of 8-bit integers with sums in i32. Four neighbours along k are multiplied at a time: a 32-bit lane of each
// factor holds four bytes, the lowest k in the lowest byte, and a step adds the four products to the lane's sum. Exact
// for signed and unsigned bytes as long as the sum fits into 32 bits.
//  * AVX-512 VNNI and AVX-VNNI multiply u8 by i8 in one instruction (vpdpbusd).
//  * Other x86-64 processors multiply and add pairs of 16-bit numbers (vpmaddwd), once for the even and once for the
//    odd bytes. vpmaddubsw is not used, because it saturates.
//  * Arm processors multiply bytes of one kind by sdot or udot, and u8 by i8 by usdot (armv8.6-a).
//  * Short vectors and other processors unpack the bytes.
#pragma once

#include <optional>
#include <string_view>

#include "mlir_bridge/codegen/kernel_emitter.hpp"

namespace kiln::cpu {

using namespace codegen;

// Number of neighbours along k in one 32-bit lane.
inline constexpr std::int64_t bytes_of_lane = 4;

struct byte_products {
  bool left_signed = false, right_signed = false;
  bool x86 = false, vnni = false;
  // The Arm instruction for these factors: "sdot", "udot" or "usdot"; empty if there is none.
  std::string_view arm = {};
};

// Returns the method for these factors, or nullopt unless both are 8-bit integers.
std::optional<byte_products> find_byte_products(const target_row& target, element_type left, element_type right);

// Returns how many registers one vector of a factor takes, apart from the sums.
std::int64_t registers_of_factor(const std::optional<byte_products>& products);

// A factor, converted to the form that is multiplied. `second` is only set for pairs of 16-bit numbers.
struct byte_factor {
  Value first, second;
};
byte_factor split_bytes(code_builder& code, const byte_products& products, Value lanes, bool is_left);
Value add_byte_products(code_builder& code, const byte_products& products, const byte_factor& left,
                        const byte_factor& right, Value sum);

// Loads four bytes from any address as one lane of i32.
Value load_lane(code_builder& code, Value pointer, element_type type);

}  // namespace kiln::cpu
