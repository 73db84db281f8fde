// Signatures of cache entries: Ed25519 by libsodium. A signed entry is followed by 104 bytes:
//
//   magic[8] "\x89KLNS\r\n\x1a", public key[32], signature[64]
//
// Signed are the 19 bytes "Kiln cache entry 1\n" and the entry's header (entry.hpp), whose hashes cover everything behind it. A signature says
// who vouches for an entry; the hashes alone find damage, not malice.
//
// Keys are text files of one line each: "kiln-signing-key-1 <64 hex digits>" (mode 0600) and "kiln-public-key-1 <64 hex digits> [comment]". A
// trust file is a list of the latter; blank lines and lines that begin with # mean nothing. Reading throws error{missing_file, corrupted}.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace kiln {

inline constexpr std::array<std::uint8_t, 8> signature_magic{0x89, 'K', 'L', 'N', 'S', '\r', '\n', 0x1a};
inline constexpr std::size_t signature_bytes = 104;

using public_key = std::array<std::uint8_t, 32>;
std::string to_hex(const public_key& key);

class signing_key {
 public:
  static signing_key generate();
  static signing_key from_seed(const std::array<std::uint8_t, 32>& seed);  // the same seed gives the same key
  static signing_key read(const std::filesystem::path& file);
  // Writes `file`, which must not exist, and its public half beside it as `file`.pub. Throws error{io}.
  void write(const std::filesystem::path& file) const;
  ~signing_key();
  signing_key(const signing_key&) = default;
  signing_key& operator=(const signing_key&) = default;

  const kiln::public_key& public_half() const { return public_; }
  // The block that follows an entry with this header.
  std::array<std::byte, signature_bytes> sign(std::span<const std::byte> entry) const;

 private:
  signing_key() = default;
  std::array<std::uint8_t, 32> seed_{};
  std::array<std::uint8_t, 64> secret_{};
  kiln::public_key public_{};
};

class trusted_keys {
 public:
  static trusted_keys read(const std::filesystem::path& file);
  explicit trusted_keys(std::set<public_key> keys) : keys_(std::move(keys)) {}
  bool contains(const public_key& key) const { return keys_.contains(key); }

 private:
  std::set<public_key> keys_;
};

// Who signed the entry, none where it ends with its payload. Throws error{corrupted} where the bytes behind the payload are no right signature.
// `payload_end` as in entry_head::file_bytes().
std::optional<public_key> signer_of(std::span<const std::byte> entry, std::uint64_t payload_end);

// The entry with this signature in place of any it had.
std::vector<std::byte> signed_entry(std::span<const std::byte> entry, const signing_key& key);

}  // namespace kiln
