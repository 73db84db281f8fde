// The bytes of a cache entry; everything little-endian.
//
//   header, 144 bytes:  magic[8], u32 version, u32 kind, key[32], u32 bytes of fields, u32 zero, u64 stored size, u64
//   raw size,
//                       BLAKE3[32] of the stored payload, 8 zero bytes, BLAKE3[32] of the header up to here and the
//                       fields
//   fields:             per field u32 length, name, u32 length, value: those that the key is the hash of
//   payload:            kernel: zstd, directly after the fields; prepared: raw, at the next multiple of 4096
//   signature:          nothing, or 104 bytes (signature.hpp)
//
// The same bytes serve as a file, in an exported folder and as a remote layer's value. Reading verifies all of it and
// throws error{truncated, corrupted, newer_version}; callers inside the cache turn that into a miss.
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
// Of a kernel, uncompressed. Prepared weights are mapped as they lie in their file, so only the disk bounds them.
inline constexpr std::uint64_t max_kernel_bytes = std::uint64_t{1} << 30;

struct entry_head {
  entry_kind kind{};
  content_hash key;
  key_fields fields;
  std::uint64_t payload_offset = 0, stored_bytes = 0, raw_bytes = 0;
  content_hash payload_hash;
  std::uint64_t file_bytes() const { return payload_offset + stored_bytes; }  // without a signature
};

// The whole entry of a kernel.
std::vector<std::byte> encode_kernel_entry(const key_fields& fields, std::span<const std::byte> payload);
// An entry of prepared weights up to its payload, which follows as it is.
std::vector<std::byte> encode_prepared_head(const key_fields& fields, std::span<const std::byte> payload);

// From the entry's first bytes, at least header and fields; the fields hash to the key.
entry_head decode_entry_head(std::span<const std::byte> bytes);
// How many bytes decode_entry_head needs, from the first entry_header_bytes.
std::size_t entry_head_bytes(std::span<const std::byte> header);

// Whether a signature that follows an entry is computed, or only has to look like one (jit/cache/signature.hpp).
enum class signature_check { compute, shape_only };

// The payload of a whole entry; `key` is what was asked for. A kernel's is decompressed, a prepared one's is a view.
std::vector<std::byte> decode_kernel_entry(std::span<const std::byte> entry, const content_hash& key,
                                           signature_check check = signature_check::compute);
std::span<const std::byte> decode_prepared_entry(std::span<const std::byte> entry, const content_hash& key,
                                                 signature_check check = signature_check::compute);
// Either kind, all of it, for `verify`.
entry_head verify_entry(std::span<const std::byte> entry);

// "<key in hex>.kernel"
std::string entry_file_name(const content_hash& key, entry_kind kind);

}  // namespace kiln
