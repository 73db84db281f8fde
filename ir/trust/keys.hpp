// Ed25519 keys (libsodium). A signed file ends with a signature block of 104 bytes after the signed bytes:
//
//   magic[8] "\x89KLNS\r\n\x1a", public key[32], signature[64]
//
// Every signed message begins with a line that names its kind ("Kiln cache entry 1\n"), so that a signature of one kind
// is not valid for another.
//
// A key file is one line of text: "kiln-signing-key-1 <64 hex digits>" (mode 0600) or "kiln-public-key-1 <64 hex
// digits> [comment]". A list of trusted keys, or a root that delegates to such a list, is read by trust_list.hpp.
// Reading throws error{missing_file, corrupted}. Values; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kiln {

inline constexpr std::array<std::uint8_t, 8> signature_magic{0x89, 'K', 'L', 'N', 'S', '\r', '\n', 0x1a};
inline constexpr std::size_t signature_bytes = 104;
using signature_block = std::array<std::byte, signature_bytes>;

using public_key = std::array<std::uint8_t, 32>;
std::string to_hex(const public_key& key);

class signing_key {
 public:
  static signing_key generate();
  static signing_key from_seed(const std::array<std::uint8_t, 32>& seed);  // the same seed gives the same key
  // Refuses a file that belongs to another user or that others can read or write.
  static signing_key read(const std::filesystem::path& file);
  // Writes the key to `file`, which must not exist, and its public half to `file`.pub. Throws error{io}.
  void write(const std::filesystem::path& file) const;
  // The contents of the two files.
  std::string text() const;
  std::string public_text() const;
  ~signing_key();
  signing_key(const signing_key&) = default;
  signing_key& operator=(const signing_key&) = default;

  const kiln::public_key& public_half() const { return public_; }
  signature_block sign(std::span<const std::byte> message) const;

 private:
  signing_key() = default;
  std::array<std::uint8_t, 32> seed_{};
  std::array<std::uint8_t, 64> secret_{};
  kiln::public_key public_{};
};

// A small text file, at most 1 MiB. Throws error{missing_file, corrupted}.
std::string read_trust_text(const std::filesystem::path& file);
// Parses 64 hex digits.
std::optional<public_key> key_of_hex(std::string_view digits);

// Returns the key that signed `message`, or nullopt if `block` is not a signature block or its signature is invalid.
std::optional<public_key> signer_of_message(std::span<const std::byte> block, std::span<const std::byte> message);

}  // namespace kiln
