#include "jit/cache/signature.hpp"

#include <cstring>

#include "ir/error.hpp"
#include "jit/cache/entry.hpp"

namespace kiln {
namespace {

constexpr std::string_view domain = "Kiln cache entry 1\n";

std::vector<std::byte> signed_message(std::span<const std::byte> entry) {
  std::vector<std::byte> message(domain.size() + entry_header_bytes);
  std::memcpy(message.data(), domain.data(), domain.size());
  std::memcpy(message.data() + domain.size(), entry.data(), entry_header_bytes);
  return message;
}

}  // namespace

void check_signature_shape(std::span<const std::byte> entry, std::uint64_t payload_end) {
  if (entry.size() < payload_end) throw error(error_kind::truncated, "a cache entry ends too early");
  if (entry.size() == payload_end) return;
  auto block = entry.subspan(payload_end);
  if (block.size() != signature_bytes || std::memcmp(block.data(), signature_magic.data(), signature_magic.size()) != 0)
    throw error(error_kind::corrupted, "damaged cache entry: there are bytes after its end");
}

std::optional<public_key> signer_of(std::span<const std::byte> entry, std::uint64_t payload_end) {
  check_signature_shape(entry, payload_end);
  if (entry.size() == payload_end) return std::nullopt;
  auto signer = signer_of_message(entry.subspan(payload_end), signed_message(entry));
  if (!signer) throw error(error_kind::corrupted, "damaged cache entry: its signature is not valid");
  return signer;
}

std::vector<std::byte> signed_entry(std::span<const std::byte> entry, const signing_key& key) {
  auto body = entry.first(decode_entry_head(entry).file_bytes());
  std::vector<std::byte> result(body.begin(), body.end());
  auto block = key.sign(signed_message(body));
  result.insert(result.end(), block.begin(), block.end());
  return result;
}

}  // namespace kiln
