// The format of a cache entry. All integers are little-endian.
//
// - header, 144 bytes: magic[8], u32 version, u32 kind, key[32], u32 bytes of fields, u32 zero, u64 stored size,
//   u64 raw size, BLAKE3[32] of the stored payload, u64 checksum of prepared weights (checksum.hpp; 0: none),
//   BLAKE3[32] of the header up to here and the fields
// - fields: for each field u32 length, name, u32 length, value. The key is the hash of the fields.
// - payload: a kernel is compressed with zstd and follows the fields directly; prepared weights are stored raw, at the
//   next multiple of 4096
// - signature: absent, or 104 bytes (signature.hpp)
//
// The same bytes are used for cache files, exported folders and values of a remote layer. Reading verifies everything
// and throws error{truncated, corrupted, newer_version}; the cache turns that into a miss.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/enum_names.hpp"
#include "jit/cache/kernel_key.hpp"

namespace kiln {

enum class entry_kind : std::uint32_t { kernel, prepared };
template <>
struct enum_table<entry_kind> {
  static constexpr std::array<std::string_view, 2> names{"kernel", "prepared"};
};

inline constexpr std::array<std::uint8_t, 8> entry_magic{0x89, 'K', 'L', 'N', 'E', '\r', '\n', 0x1a};
inline constexpr std::uint32_t entry_version = 1;
inline constexpr std::size_t entry_header_bytes = 144, entry_page = 4096, max_field_bytes = std::size_t{1} << 20;
// Largest uncompressed kernel. Prepared weights are mapped directly from their file, so only the disk bounds them.
inline constexpr std::uint64_t max_kernel_bytes = std::uint64_t{1} << 30;

struct entry_head {
  entry_kind kind{};
  content_hash key;
  key_fields fields;
  std::uint64_t payload_offset = 0, stored_bytes = 0, raw_bytes = 0;
  content_hash payload_hash;
  std::uint64_t checksum = 0;
  std::uint64_t file_bytes() const { return payload_offset + stored_bytes; }  // without the signature
};

// The whole entry of a kernel.
std::vector<std::byte> encode_kernel_entry(const key_fields& fields, std::span<const std::byte> payload);
// An entry of prepared weights up to its payload. The caller appends the payload unchanged.
std::vector<std::byte> encode_prepared_head(const key_fields& fields, std::span<const std::byte> payload);

// Decodes and verifies header and fields. `bytes` are the entry's first bytes and must include all fields. The fields'
// hash must equal the key.
entry_head decode_entry_head(std::span<const std::byte> bytes);
// The number of bytes that decode_entry_head needs, computed from the first entry_header_bytes bytes.
std::size_t entry_head_bytes(std::span<const std::byte> header);

// How to check an entry. `compute` verifies the signature and the payload's BLAKE3. `shape_only`, for folders that are
// trusted by their owner, checks the signature's format (signature.hpp), and prepared weights by their checksum.
enum class signature_check { compute, shape_only };

// The payload of a whole entry, whose key must be `key`. A kernel's payload is decompressed; a prepared entry's is a
// view of `entry`.
std::vector<std::byte> decode_kernel_entry(std::span<const std::byte> entry, const content_hash& key,
                                           signature_check check = signature_check::compute);
std::span<const std::byte> decode_prepared_entry(std::span<const std::byte> entry, const content_hash& key,
                                                 signature_check check = signature_check::compute);
// Verifies a whole entry of either kind, including its signature. For `kiln cache verify`.
entry_head verify_entry(std::span<const std::byte> entry);

// "<key in hex>.kernel"
std::string entry_file_name(const content_hash& key, entry_kind kind);

}  // namespace kiln
