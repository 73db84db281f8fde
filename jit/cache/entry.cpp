#include "jit/cache/entry.hpp"

#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "ir/container/compression.hpp"
#include "ir/container/format.hpp"
#include "ir/container/weights.hpp"
#include "ir/error.hpp"
#include "jit/cache/checksum.hpp"
#include "jit/cache/signature.hpp"

namespace kiln {
namespace {

// Level 3 is fast: storing delays the first run, and kernels are small.
constexpr int compression_level = 3;
constexpr std::size_t hashed_header_bytes = 112;

[[noreturn]] void corrupted(const char* what) {
  throw error(error_kind::corrupted, std::string("damaged cache entry: ") + what);
}

template <class T>
void put(std::vector<std::byte>& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i)));
}
void put(std::vector<std::byte>& out, const content_hash& hash) {
  auto bytes = std::as_bytes(std::span(hash.bytes));
  out.insert(out.end(), bytes.begin(), bytes.end());
}
void put(std::vector<std::byte>& out, std::string_view text) {
  put(out, static_cast<std::uint32_t>(text.size()));
  auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <class T>
T get(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= std::uint64_t(bytes[at + i]) << (8 * i);
  return static_cast<T>(value);
}
content_hash get_hash(std::span<const std::byte> bytes, std::size_t at) {
  content_hash hash;
  std::memcpy(hash.bytes.data(), bytes.data() + at, hash.bytes.size());
  return hash;
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

content_hash hash_of_frame(std::span<const std::byte> header, std::span<const std::byte> fields) {
  std::vector<std::byte> covered(header.begin(), header.begin() + hashed_header_bytes);
  covered.insert(covered.end(), fields.begin(), fields.end());
  return blake3(covered);
}

// Prepared weights may be large, so use the hash function that runs on several threads.
content_hash hash_of_payload(std::span<const std::byte> payload) { return container::hash_tensors({{payload}})[0]; }

std::uint64_t payload_offset(entry_kind kind, std::uint64_t head_bytes) {
  return kind == entry_kind::kernel ? head_bytes : (head_bytes + entry_page - 1) / entry_page * entry_page;
}

std::vector<std::byte> encode_head(entry_kind kind, const key_fields& fields, std::span<const std::byte> stored,
                                   std::uint64_t raw_bytes) {
  std::vector<std::byte> text;
  for (const auto& [name, value] : fields) {
    put(text, std::string_view(name));
    put(text, std::string_view(value));
  }
  if (text.size() > max_field_bytes) throw error(error_kind::unsupported, "a cache key of more than 1 MiB");
  std::vector<std::byte> out;
  for (std::uint8_t b : entry_magic) put(out, b);
  put(out, entry_version);
  put(out, static_cast<std::uint32_t>(kind));
  put(out, hash_of(fields));
  put(out, static_cast<std::uint32_t>(text.size()));
  put(out, std::uint32_t{0});
  put(out, static_cast<std::uint64_t>(stored.size()));
  put(out, raw_bytes);
  put(out, hash_of_payload(stored));
  put(out, kind == entry_kind::prepared ? checksum_of(stored) : std::uint64_t{0});
  put(out, hash_of_frame(out, text));
  out.insert(out.end(), text.begin(), text.end());
  out.resize(payload_offset(kind, out.size()));
  return out;
}

key_fields decode_fields(std::span<const std::byte> text) {
  key_fields fields;
  auto take = [&] {
    if (text.size() < 4) corrupted("its fields end early");
    std::size_t length = get<std::uint32_t>(text, 0);
    if (length > text.size() - 4) corrupted("its fields end early");
    std::string value(reinterpret_cast<const char*>(text.data()) + 4, length);
    text = text.subspan(4 + length);
    return value;
  };
  while (!text.empty()) {
    std::string name = take();
    fields.emplace_back(std::move(name), take());
  }
  return fields;
}

// Verifies the stored payload of a whole entry and returns it.
std::span<const std::byte> stored_payload(std::span<const std::byte> entry, const entry_head& head,
                                          signature_check check) {
  check_signature_shape(entry, head.file_bytes());
  if (check == signature_check::compute)
    signer_of(entry, head.file_bytes());  // throws if the signature is invalid; any signer is accepted here
  std::size_t head_end = entry_head_bytes(entry);
  if (!all_zero(entry.subspan(head_end, head.payload_offset - head_end)))
    corrupted("the padding before its payload is not zero");
  auto stored = entry.subspan(head.payload_offset, head.stored_bytes);
  const bool quick = check == signature_check::shape_only && head.checksum != 0;
  if (quick ? checksum_of(stored) != head.checksum : hash_of_payload(stored) != head.payload_hash)
    corrupted("its payload does not match its hash");
  return stored;
}

std::vector<std::byte> decompress(std::span<const std::byte> stored, std::uint64_t raw_bytes) {
  auto raw = container::decompress_frame(stored, raw_bytes);
  if (!raw) corrupted("its payload cannot be decompressed");
  return *std::move(raw);
}

entry_head decode_expected(std::span<const std::byte> entry, const content_hash& key, entry_kind kind) {
  entry_head head = decode_entry_head(entry);
  if (head.kind != kind || head.key != key) corrupted("it belongs to another key");
  return head;
}

}  // namespace

std::vector<std::byte> encode_kernel_entry(const key_fields& fields, std::span<const std::byte> payload) {
  if (payload.size() > max_kernel_bytes) throw error(error_kind::unsupported, "a kernel of more than 1 GiB");
  std::vector<std::byte> stored(ZSTD_compressBound(payload.size()));
  std::size_t size = ZSTD_compress(stored.data(), stored.size(), payload.data(), payload.size(), compression_level);
  if (ZSTD_isError(size))
    throw error(error_kind::internal, std::string("a kernel cannot be compressed: ") + ZSTD_getErrorName(size));
  stored.resize(size);
  if (payload.size() > container::max_expansion(size))
    throw error(error_kind::unsupported, "a kernel that is almost all zeros");
  std::vector<std::byte> entry = encode_head(entry_kind::kernel, fields, stored, payload.size());
  entry.insert(entry.end(), stored.begin(), stored.end());
  return entry;
}

std::vector<std::byte> encode_prepared_head(const key_fields& fields, std::span<const std::byte> payload) {
  return encode_head(entry_kind::prepared, fields, payload, payload.size());
}

std::size_t entry_head_bytes(std::span<const std::byte> header) {
  if (header.size() < entry_header_bytes) throw error(error_kind::truncated, "a cache entry ends within its header");
  if (std::memcmp(header.data(), entry_magic.data(), entry_magic.size()) != 0)
    corrupted("it does not begin as a cache entry");
  if (get<std::uint32_t>(header, 8) > entry_version)
    throw error(error_kind::newer_version, "a cache entry of a newer version of Kiln");
  std::size_t fields = get<std::uint32_t>(header, 48);
  if (fields > max_field_bytes) corrupted("its fields are too long");
  return entry_header_bytes + fields;
}

entry_head decode_entry_head(std::span<const std::byte> bytes) {
  std::size_t end = entry_head_bytes(bytes);
  if (bytes.size() < end) throw error(error_kind::truncated, "a cache entry ends within its fields");
  auto text = bytes.subspan(entry_header_bytes, end - entry_header_bytes);
  if (get_hash(bytes, hashed_header_bytes) != hash_of_frame(bytes, text))
    corrupted("its header and fields do not match their hash");
  entry_head head;
  head.kind = static_cast<entry_kind>(get<std::uint32_t>(bytes, 12));
  head.key = get_hash(bytes, 16);
  head.stored_bytes = get<std::uint64_t>(bytes, 56);
  head.raw_bytes = get<std::uint64_t>(bytes, 64);
  head.payload_hash = get_hash(bytes, 72);
  head.checksum = get<std::uint64_t>(bytes, 104);
  head.fields = decode_fields(text);
  head.payload_offset = payload_offset(head.kind, end);
  if (head.kind == entry_kind::kernel && head.checksum) corrupted("a kernel has no checksum");
  if (get<std::uint32_t>(bytes, 8) != entry_version ||
      static_cast<std::size_t>(head.kind) >= enum_table<entry_kind>::names.size())
    corrupted("its version or kind is unknown");
  if (hash_of(head.fields) != head.key) corrupted("its key does not follow from its fields");
  if (head.stored_bytes > std::uint64_t{1} << 46) corrupted("its size is impossible");
  const bool possible = head.kind == entry_kind::kernel
                            ? head.raw_bytes <= std::min(max_kernel_bytes, container::max_expansion(head.stored_bytes))
                            : head.raw_bytes == head.stored_bytes;
  if (!possible) corrupted("its size is impossible");
  return head;
}

std::vector<std::byte> decode_kernel_entry(std::span<const std::byte> entry, const content_hash& key,
                                           signature_check check) {
  entry_head head = decode_expected(entry, key, entry_kind::kernel);
  return decompress(stored_payload(entry, head, check), head.raw_bytes);
}

std::span<const std::byte> decode_prepared_entry(std::span<const std::byte> entry, const content_hash& key,
                                                 signature_check check) {
  return stored_payload(entry, decode_expected(entry, key, entry_kind::prepared), check);
}

entry_head verify_entry(std::span<const std::byte> entry) {
  entry_head head = decode_entry_head(entry);
  auto stored = stored_payload(entry, head, signature_check::compute);
  if (head.kind == entry_kind::kernel) decompress(stored, head.raw_bytes);
  else if (head.checksum && checksum_of(stored) != head.checksum) corrupted("its payload does not match its checksum");
  return head;
}

std::string entry_file_name(const content_hash& key, entry_kind kind) {
  return key.hex() + "." + std::string(enum_name(kind));
}

}  // namespace kiln
