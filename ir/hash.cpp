#include "ir/hash.hpp"

#include <blake3.h>

#include <cstring>
#include <new>

#include "ir/error.hpp"

namespace kiln {
namespace {

static_assert(sizeof(blake3_hasher) <= 2048);

content_hash finalize(const blake3_hasher& hasher) {
  content_hash result;
  blake3_hasher_finalize(&hasher, result.bytes.data(), result.bytes.size());
  return result;
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string content_hash::hex() const {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (std::uint8_t b : bytes) {
    text += digits[b >> 4];
    text += digits[b & 15];
  }
  return text;
}

content_hash content_hash::from_hex(std::string_view digits) {
  content_hash result;
  if (digits.size() != 64) throw error(error_kind::usage, "not a content hash: '" + std::string(digits) + "'");
  for (std::size_t i = 0; i < 32; ++i) {
    int high = digit(digits[2 * i]), low = digit(digits[2 * i + 1]);
    if (high < 0 || low < 0) throw error(error_kind::usage, "not a content hash: '" + std::string(digits) + "'");
    result.bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return result;
}

content_hash blake3(std::span<const std::byte> data) {
  blake3_hasher hasher;
  blake3_hasher_init(&hasher);
  blake3_hasher_update(&hasher, data.data(), data.size());
  return finalize(hasher);
}

content_hash blake3(std::string_view text) { return blake3(std::as_bytes(std::span(text.data(), text.size()))); }

field_hasher::field_hasher() { blake3_hasher_init(new (state_.data()) blake3_hasher); }
field_hasher::~field_hasher() = default;

field_hasher& field_hasher::add(std::span<const std::byte> field) {
  auto* hasher = std::launder(reinterpret_cast<blake3_hasher*>(state_.data()));
  std::uint8_t length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<std::uint8_t>(std::uint64_t(field.size()) >> (8 * i));
  blake3_hasher_update(hasher, length, sizeof length);
  blake3_hasher_update(hasher, field.data(), field.size());
  return *this;
}

field_hasher& field_hasher::add(std::string_view field) {
  return add(std::as_bytes(std::span(field.data(), field.size())));
}

field_hasher& field_hasher::add(std::int64_t field) {
  std::uint8_t bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(field) >> (8 * i));
  return add(std::as_bytes(std::span(bytes)));
}

field_hasher& field_hasher::add(const content_hash& field) { return add(std::as_bytes(std::span(field.bytes))); }

content_hash field_hasher::finish() const {
  return finalize(*std::launder(reinterpret_cast<const blake3_hasher*>(state_.data())));
}

}  // namespace kiln
