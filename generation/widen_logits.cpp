#include "generation/widen_logits.hpp"

#include <bit>
#include <cstdint>
#include <cstring>

#include "ir/literal.hpp"

namespace kiln {
namespace {

// Without branches, so that a loop of it becomes vector code. A product with 2^112 moves the exponent, also that of
// subnormal numbers, which f32 has as normal ones.
float widened(std::uint16_t bits) {
  const auto wide = static_cast<std::uint32_t>(bits);
  const std::uint32_t magnitude = (wide & 0x7fffu) << 13;
  const std::uint32_t finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const std::uint32_t special = magnitude | 0x7f800000u;  // infinity or NaN
  return std::bit_cast<float>(((wide & 0x7c00u) == 0x7c00u ? special : finite) | (wide & 0x8000u) << 16);
}

}  // namespace

void widen_logits(element_type type, std::span<const std::byte> row, std::span<float> result) {
  const auto each = [&](auto widen) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      std::uint16_t bits;
      std::memcpy(&bits, row.data() + 2 * i, 2);
      result[i] = widen(bits);
    }
  };
  if (type == element_type::f16) return each(widened);
  if (type == element_type::bf16)
    return each([](std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); });
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<float>(load_element(type, row.data(), static_cast<std::int64_t>(i)));
}

}  // namespace kiln
