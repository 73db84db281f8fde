#include "jit/cache/signature.hpp"

#include <sodium.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "ir/error.hpp"
#include "jit/cache/entry.hpp"

namespace kiln {
namespace {

constexpr std::string_view domain = "Kiln cache entry 1\n", secret_label = "kiln-signing-key-1", public_label = "kiln-public-key-1";

void require_sodium() {
  if (::sodium_init() < 0) throw error(error_kind::internal, "libsodium cannot be initialized");
}

std::string hex_of(std::span<const std::uint8_t, 32> bytes) {
  std::string text(65, '\0');
  ::sodium_bin2hex(text.data(), text.size(), bytes.data(), bytes.size());
  text.resize(64);
  return text;
}

// "LABEL HEX ..."; false where the line is anything else.
bool parse_line(const std::string& line, std::string_view label, std::array<std::uint8_t, 32>& bytes) {
  std::istringstream words(line);
  std::string first, digits;
  std::size_t length = 0;
  return words >> first >> digits && first == label && digits.size() == 64 &&
         ::sodium_hex2bin(bytes.data(), bytes.size(), digits.data(), digits.size(), nullptr, &length, nullptr) == 0 && length == bytes.size();
}

std::ifstream open_text(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw error(error_kind::missing_file, file.string() + ": cannot be read: " + std::strerror(errno));
  return in;
}

std::vector<std::uint8_t> signed_message(std::span<const std::byte> entry) {
  std::vector<std::uint8_t> message(domain.begin(), domain.end());
  for (std::byte b : entry.first(entry_header_bytes)) message.push_back(static_cast<std::uint8_t>(b));
  return message;
}

void write_new(const std::filesystem::path& file, const std::string& text, mode_t mode) {
  auto fail = [&](const char* what) { throw error(error_kind::io, file.string() + ": cannot be " + what + ": " + std::strerror(errno)); };
  int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (descriptor < 0) fail("made");
  ssize_t written = ::write(descriptor, text.data(), text.size());
  int code = ::close(descriptor);
  if (written != static_cast<ssize_t>(text.size()) || code != 0) fail("written");
}

}  // namespace

std::string to_hex(const public_key& key) { return hex_of(key); }

signing_key signing_key::from_seed(const std::array<std::uint8_t, 32>& seed) {
  require_sodium();
  signing_key key;
  key.seed_ = seed;
  ::crypto_sign_seed_keypair(key.public_.data(), key.secret_.data(), key.seed_.data());
  return key;
}

signing_key signing_key::generate() {
  require_sodium();
  std::array<std::uint8_t, 32> seed{};
  ::randombytes_buf(seed.data(), seed.size());
  signing_key key = from_seed(seed);
  ::sodium_memzero(seed.data(), seed.size());
  return key;
}

signing_key signing_key::read(const std::filesystem::path& file) {
  std::ifstream in = open_text(file);
  struct stat status {};
  if (::stat(file.c_str(), &status) == 0 && (status.st_mode & 077) != 0)
    throw error(error_kind::corrupted, file.string() + ": a signing key that others may read or write is none: chmod 600 it, or make a new one");
  std::string line;
  std::array<std::uint8_t, 32> seed{};
  if (!std::getline(in, line) || !parse_line(line, secret_label, seed)) throw error(error_kind::corrupted, file.string() + ": is no signing key: kiln cache keygen makes one");
  signing_key key = from_seed(seed);
  ::sodium_memzero(seed.data(), seed.size());
  ::sodium_memzero(line.data(), line.size());
  return key;
}

void signing_key::write(const std::filesystem::path& file) const {
  write_new(file, std::string(secret_label) + " " + hex_of(seed_) + "\n", 0600);
  write_new(file.string() + ".pub", std::string(public_label) + " " + hex_of(public_) + "\n", 0644);
}

signing_key::~signing_key() {
  ::sodium_memzero(seed_.data(), seed_.size());
  ::sodium_memzero(secret_.data(), secret_.size());
}

std::array<std::byte, signature_bytes> signing_key::sign(std::span<const std::byte> entry) const {
  auto message = signed_message(entry);
  std::array<std::uint8_t, signature_bytes> block{};
  auto end = std::ranges::copy(signature_magic, block.begin()).out;
  end = std::ranges::copy(public_, end).out;
  ::crypto_sign_detached(&*end, nullptr, message.data(), message.size(), secret_.data());
  std::array<std::byte, signature_bytes> bytes{};
  std::ranges::transform(block, bytes.begin(), [](std::uint8_t b) { return static_cast<std::byte>(b); });
  return bytes;
}

trusted_keys trusted_keys::read(const std::filesystem::path& file) {
  require_sodium();
  std::ifstream in = open_text(file);
  std::set<public_key> keys;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos || line.starts_with('#')) continue;
    public_key key{};
    if (!parse_line(line, public_label, key)) throw error(error_kind::corrupted, file.string() + ": line " + std::to_string(number) + " is no public key");
    keys.insert(key);
  }
  if (keys.empty()) throw error(error_kind::corrupted, file.string() + ": holds no public key");
  return trusted_keys(std::move(keys));
}

std::optional<public_key> signer_of(std::span<const std::byte> entry, std::uint64_t payload_end) {
  if (entry.size() == payload_end) return std::nullopt;
  auto block = entry.subspan(payload_end);
  if (block.size() != signature_bytes || std::memcmp(block.data(), signature_magic.data(), signature_magic.size()) != 0) throw error(error_kind::corrupted, "damaged cache entry: bytes after its end");
  require_sodium();
  public_key key{};
  std::memcpy(key.data(), block.data() + signature_magic.size(), key.size());
  auto message = signed_message(entry);
  const auto* signature = reinterpret_cast<const unsigned char*>(block.data() + signature_magic.size() + key.size());
  if (::crypto_sign_verify_detached(signature, message.data(), message.size(), key.data()) != 0) throw error(error_kind::corrupted, "damaged cache entry: its signature");
  return key;
}

std::vector<std::byte> signed_entry(std::span<const std::byte> entry, const signing_key& key) {
  auto body = entry.first(decode_entry_head(entry).file_bytes());
  std::vector<std::byte> result(body.begin(), body.end());
  auto block = key.sign(body);
  result.insert(result.end(), block.begin(), block.end());
  return result;
}

}  // namespace kiln
