// Reads numbers, texts and sections of MLIR's bytecode (mlir/Bytecode/Encoding.h) from untrusted bytes.
// Every read is bounded; what does not fit throws error{corrupted}. Refers to the caller's bytes. Internal to
// bytecode_check.cpp and bytecode_tables.cpp.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "ir/error.hpp"

namespace kiln {

[[noreturn]] inline void refuse_bytecode(const std::string& what) {
  throw error(error_kind::corrupted, "the kernel cannot be read: " + what);
}

enum class bytecode_section : std::uint8_t {
  strings,
  dialects,
  entries,  // attributes and types
  entry_sizes,
  operations,
  resources,
  resource_sizes,
  dialect_version,
  properties
};
inline constexpr std::size_t bytecode_sections = 9;

class bytecode_cursor {
 public:
  explicit bytecode_cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  std::size_t left() const { return bytes_.size(); }

  std::span<const std::byte> take(std::uint64_t count) {
    if (count > bytes_.size()) refuse_bytecode("it ends early");
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }

  std::uint8_t byte() { return std::to_integer<std::uint8_t>(take(1)[0]); }

  // The zeros below the lowest set bit of the first byte say how many bytes follow it; a first byte of 0 is followed by
  // 8 bytes.
  std::uint64_t number() {
    const std::uint8_t first = byte();
    const auto more = first == 0 ? 8 : std::countr_zero(first);
    std::uint64_t rest = 0;
    const auto following = take(static_cast<std::uint64_t>(more));
    for (std::size_t i = following.size(); i-- > 0;) rest = rest << 8 | std::to_integer<std::uint64_t>(following[i]);
    if (first == 0) return rest;
    return (more == 7 ? 0 : std::uint64_t{first} >> (more + 1)) | rest << (7 - more);
  }

  struct flagged {
    std::uint64_t number;
    bool flag;
  };
  flagged number_with_flag() {
    const std::uint64_t both = number();
    return {both >> 1, (both & 1) != 0};
  }

  std::int64_t signed_number() {
    const std::uint64_t folded = number();
    return static_cast<std::int64_t>(folded >> 1 ^ (~(folded & 1) + 1));
  }

  // Checks how many items follow, each of at least one byte.
  std::uint64_t checked_count(std::uint64_t items, const char* of) const {
    if (items > bytes_.size())
      refuse_bytecode(std::to_string(items) + " " + of + " in " + std::to_string(bytes_.size()) + " bytes");
    return items;
  }
  std::uint64_t count(const char* of) {
    const std::uint64_t items = number();
    return checked_count(items, of);
  }

  std::uint64_t index(std::size_t size, const char* of) { return checked_index(number(), size, of); }
  static std::uint64_t checked_index(std::uint64_t index, std::size_t size, const char* of) {
    if (index >= size)
      refuse_bytecode("it refers to " + std::string(of) + " " + std::to_string(index) + " of " + std::to_string(size));
    return index;
  }

  // A text that ends with a zero.
  std::string_view text() {
    const auto* begin = reinterpret_cast<const char*>(bytes_.data());
    const std::size_t size = std::string_view(begin, bytes_.size()).find('\0');
    if (size == std::string_view::npos) refuse_bytecode("a text does not end");
    take(size + 1);
    return {begin, size};
  }

  struct section {
    bytecode_section kind;
    std::span<const std::byte> bytes;
  };
  section next_section() {
    const std::uint8_t kind = byte();
    // Aligned sections, which have the highest bit set, are for resources; a kernel has none.
    if (kind >= bytecode_sections) refuse_bytecode("it has a section of kind " + std::to_string(kind));
    return {static_cast<bytecode_section>(kind), take(number())};
  }

  void expect_end(const char* of) const {
    if (!empty()) refuse_bytecode(std::to_string(left()) + " bytes follow " + of);
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace kiln
