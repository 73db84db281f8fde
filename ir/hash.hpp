// BLAKE3 content hashes of 32 bytes. The algorithm is by O'Connor, Aumasson, Neves and Wilcox-O'Hearn; the authors' C
// implementation is in third_party/blake3.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace kiln {

struct content_hash {
  std::array<std::uint8_t, 32> bytes{};
  std::string hex() const;                                // 64 lower-case digits
  static content_hash from_hex(std::string_view digits);  // throws error{usage}
  friend auto operator<=>(const content_hash&, const content_hash&) = default;
};

content_hash blake3(std::span<const std::byte> data);
content_hash blake3(std::string_view text);

// Hashes a sequence of fields. Each field is prefixed with its length, so that ("ab","c") and ("a","bc") differ.
class field_hasher {
 public:
  field_hasher();
  ~field_hasher();
  field_hasher(const field_hasher&) = delete;
  field_hasher& operator=(const field_hasher&) = delete;
  field_hasher& add(std::span<const std::byte> field);
  field_hasher& add(std::string_view field);
  field_hasher& add(std::int64_t field);
  field_hasher& add(const content_hash& field);
  content_hash finish() const;

 private:
  alignas(64) std::array<std::byte, 2048> state_;
};

}  // namespace kiln

template <>
struct std::hash<kiln::content_hash> {
  std::size_t operator()(const kiln::content_hash& h) const noexcept {
    std::size_t word;
    __builtin_memcpy(&word, h.bytes.data(), sizeof word);
    return word;
  }
};
