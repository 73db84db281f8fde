// Identifies and validates the bytes of a GPU object before the driver reads them. Drivers take images without a size,
// so a damaged one could make them read out of bounds. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "ir/error.hpp"

namespace kiln::gpu {

inline bool is_elf(std::span<const std::byte> object) {
  return object.size() >= 4 && std::memcmp(object.data(), "\177ELF", 4) == 0;
}

// Throws error{corrupted} for a 64-bit ELF whose headers point outside of `object`.
inline void check_elf(std::span<const std::byte> object) {
  auto field = [&](std::size_t at, std::size_t bytes) {
    std::uint64_t value = 0;
    if (at + bytes > object.size())
      throw error(error_kind::corrupted, "a kernel's object is truncated: finalize the program again");
    std::memcpy(&value, object.data() + at, bytes);
    return value;
  };
  auto inside = [&](std::uint64_t at, std::uint64_t bytes) {
    if (at > object.size() || bytes > object.size() - at)
      throw error(error_kind::corrupted, "a kernel's object is truncated: finalize the program again");
  };
  if (field(4, 1) != 2)
    throw error(error_kind::corrupted, "a kernel's object is not a 64-bit one: finalize the program again");
  constexpr std::uint64_t section_bytes = 64, segment_bytes = 56, no_bits = 8;
  std::uint64_t segments = field(32, 8), sections = field(40, 8), segment_count = field(56, 2),
                section_count = field(60, 2);
  inside(segments, segment_count * segment_bytes);
  inside(sections, section_count * section_bytes);
  for (std::uint64_t i = 0; i < section_count; ++i) {
    std::uint64_t at = sections + i * section_bytes;
    if (field(at + 4, 4) != no_bits && field(at + 4, 4) != 0) inside(field(at + 24, 8), field(at + 32, 8));
  }
  for (std::uint64_t i = 0; i < segment_count; ++i)
    inside(field(segments + i * segment_bytes + 8, 8), field(segments + i * segment_bytes + 32, 8));
}

inline constexpr std::string_view bundle_magic = "__CLANG_OFFLOAD_BUNDLE__";

inline bool is_bundle(std::span<const std::byte> object) {
  return object.size() >= bundle_magic.size() &&
         std::memcmp(object.data(), bundle_magic.data(), bundle_magic.size()) == 0;
}

// Throws error{corrupted} for a clang offload bundle with entries outside of `object`. The layout is the magic, the
// number of entries, and per entry its offset, size, name length and name.
inline void check_bundle(std::span<const std::byte> object) {
  std::size_t at = bundle_magic.size();
  auto skip = [&](std::uint64_t bytes) {
    if (bytes > object.size() - at)
      throw error(error_kind::corrupted, "a kernel's offload bundle is truncated: finalize the program again");
    at += bytes;
  };
  auto number = [&] {
    std::uint64_t value = 0;
    std::size_t begin = at;
    skip(sizeof value);
    std::memcpy(&value, object.data() + begin, sizeof value);
    return value;
  };
  for (std::uint64_t left = number(); left > 0; --left) {
    std::uint64_t offset = number(), size = number();
    if (offset > object.size() || size > object.size() - offset)
      throw error(error_kind::corrupted, "a kernel's offload bundle is truncated: finalize the program again");
    skip(number());
  }
}

// Returns the text with a terminating zero byte, as drivers expect it. Throws error{corrupted} if the text contains a
// zero byte.
inline std::vector<std::byte> as_text(std::span<const std::byte> object) {
  std::vector<std::byte> text(object.begin(), object.end());
  while (!text.empty() && text.back() == std::byte{0}) text.pop_back();
  if (text.empty() || std::memchr(text.data(), 0, text.size()))
    throw error(error_kind::corrupted,
                "a kernel's object is neither machine code nor text: finalize the program again");
  text.push_back(std::byte{0});
  return text;
}

// The target of a PTX text, such as "sm_90a"; empty if it has none.
inline std::string_view ptx_target(std::span<const std::byte> text) {
  std::string_view all(reinterpret_cast<const char*>(text.data()), text.size());
  constexpr std::string_view directive = ".target ";
  auto at = all.find(directive);
  if (at == std::string_view::npos) return {};
  all.remove_prefix(at + directive.size());
  return all.substr(0, all.find_first_of(", \t\r\n"));
}

}  // namespace kiln::gpu
