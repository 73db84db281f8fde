#include "ir/trust/keys.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "ir/error.hpp"

namespace kiln {
namespace {

constexpr std::string_view secret_label = "kiln-signing-key-1", public_label = "kiln-public-key-1";
// Upper bound on the size of a key file or trust file.
constexpr std::size_t most_text_bytes = std::size_t{1} << 20;

void require_sodium() {
  if (::sodium_init() < 0) throw error(error_kind::internal, "libsodium cannot be initialized");
}

std::string hex_of(std::span<const std::uint8_t, 32> bytes) {
  std::string text(65, '\0');
  ::sodium_bin2hex(text.data(), text.size(), bytes.data(), bytes.size());
  text.resize(64);
  return text;
}

// Parses "LABEL HEX ..."; returns false for any other line.
bool parse_line(const std::string& line, std::string_view label, std::array<std::uint8_t, 32>& bytes) {
  std::istringstream words(line);
  std::string first, digits;
  std::size_t length = 0;
  return words >> first >> digits && first == label && digits.size() == 64 &&
         ::sodium_hex2bin(bytes.data(), bytes.size(), digits.data(), digits.size(), nullptr, &length, nullptr) == 0 &&
         length == bytes.size();
}

// Owns a file descriptor.
struct descriptor {
  int number = -1;
  ~descriptor() {
    if (number >= 0) ::close(number);
  }
};

// Reads a small text file. `status` comes from the open descriptor, not from the name, so it describes the file that
// was read.
std::string read_text(const std::filesystem::path& file, struct stat& status) {
  auto fail = [&] {
    throw error(error_kind::missing_file, file.string() + ": cannot be read: " + std::strerror(errno));
  };
  descriptor opened{::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (opened.number < 0 || ::fstat(opened.number, &status) != 0) fail();
  if (!S_ISREG(status.st_mode)) throw error(error_kind::missing_file, file.string() + ": is not a regular file");
  std::string text(std::min<std::size_t>(static_cast<std::size_t>(status.st_size), most_text_bytes + 1), '\0');
  std::size_t have = 0;
  for (ssize_t n = 1; n != 0 && have < text.size();) {
    n = ::read(opened.number, text.data() + have, text.size() - have);
    if (n < 0 && errno != EINTR) fail();
    if (n > 0) have += static_cast<std::size_t>(n);
  }
  text.resize(have);
  if (text.size() > most_text_bytes)
    throw error(error_kind::corrupted, file.string() + ": is too large for a list of keys");
  return text;
}

void write_new(const std::filesystem::path& file, const std::string& text, mode_t mode) {
  auto fail = [&](const char* what) {
    throw error(error_kind::io, file.string() + ": cannot be " + what + ": " + std::strerror(errno));
  };
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
  struct stat status{};
  std::string text = read_text(file, status);
  auto refuse = [&](const char* why) { throw error(error_kind::corrupted, file.string() + ": " + why); };
  if ((status.st_mode & 077) != 0) refuse("others may read or write this signing key: chmod 600 it, or make a new one");
  if (status.st_uid != ::geteuid())
    refuse("this signing key belongs to another user: make one of your own (kiln cache keygen)");
  std::array<std::uint8_t, 32> seed{};
  if (!parse_line(text.substr(0, text.find('\n')), secret_label, seed))
    refuse("is no signing key: kiln cache keygen makes one");
  signing_key key = from_seed(seed);
  ::sodium_memzero(seed.data(), seed.size());
  ::sodium_memzero(text.data(), text.size());
  return key;
}

std::string signing_key::text() const { return std::string(secret_label) + " " + hex_of(seed_) + "\n"; }
std::string signing_key::public_text() const { return std::string(public_label) + " " + hex_of(public_) + "\n"; }

void signing_key::write(const std::filesystem::path& file) const {
  write_new(file, text(), 0600);
  write_new(file.string() + ".pub", public_text(), 0644);
}

signing_key::~signing_key() {
  ::sodium_memzero(seed_.data(), seed_.size());
  ::sodium_memzero(secret_.data(), secret_.size());
}

signature_block signing_key::sign(std::span<const std::byte> message) const {
  std::array<std::uint8_t, signature_bytes> block{};
  auto end = std::ranges::copy(signature_magic, block.begin()).out;
  end = std::ranges::copy(public_, end).out;
  ::crypto_sign_detached(&*end, nullptr, reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                         secret_.data());
  signature_block bytes{};
  std::ranges::transform(block, bytes.begin(), [](std::uint8_t b) { return static_cast<std::byte>(b); });
  return bytes;
}

std::string read_trust_text(const std::filesystem::path& file) {
  struct stat status{};
  return read_text(file, status);
}

std::optional<public_key> key_of_hex(std::string_view digits) {
  require_sodium();
  public_key key{};
  std::size_t length = 0;
  if (digits.size() != 64 ||
      ::sodium_hex2bin(key.data(), key.size(), digits.data(), digits.size(), nullptr, &length, nullptr) != 0 ||
      length != key.size())
    return std::nullopt;
  return key;
}

std::optional<public_key> signer_of_message(std::span<const std::byte> block, std::span<const std::byte> message) {
  if (block.size() != signature_bytes || std::memcmp(block.data(), signature_magic.data(), signature_magic.size()) != 0)
    return std::nullopt;
  require_sodium();
  public_key key{};
  std::memcpy(key.data(), block.data() + signature_magic.size(), key.size());
  const auto* signature = reinterpret_cast<const unsigned char*>(block.data() + signature_magic.size() + key.size());
  const auto* bytes = reinterpret_cast<const unsigned char*>(message.data());
  if (::crypto_sign_verify_detached(signature, bytes, message.size(), key.data()) != 0) return std::nullopt;
  return key;
}

}  // namespace kiln
