// The frame of a `.kiln` file: header, section table, sections; everything little-endian.
//
//   header, 64 bytes:  magic[8], u32 format version, u32 sections, u64 file size, u16 major, minor, patch of the Kiln
//   that
//                      wrote it, u16 zero, BLAKE3[32] of the header's first 32 bytes and the table
//   table, 64 bytes per section:  u32 kind, u32 codec, u64 offset, u64 stored size, u64 raw size, BLAKE3[32]
//   sections, in the order of the table, each at a multiple of its alignment; the bytes between them are zero; the last
//   one
//                      ends where the file ends
//
// A section's hash is that of its stored bytes. The exception is `weights`, whose tensors have hashes of their own in
// `weights_index`: its hash is that of the stored weights index, and the bytes between its tensors are zero. So every
// byte of the file is either under a hash or known to be zero.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/enum_names.hpp"
#include "ir/hash.hpp"

namespace kiln::container {

inline constexpr std::array<std::uint8_t, 8> magic{0x89, 'K', 'I', 'L', 'N', '\r', '\n', 0x1a};
inline constexpr std::uint32_t format_version = 1;
inline constexpr std::size_t header_bytes = 64, table_row_bytes = 64, max_sections = 64;
inline constexpr std::size_t section_alignment = 16, weights_alignment = 4096, tensor_alignment = 64;
// FlatBuffers' own limit is 2 GiB; weights are not bound by it.
inline constexpr std::uint64_t max_raw_bytes = (std::uint64_t{1} << 31) - 1;

enum class section_kind : std::uint32_t {
  manifest,
  program,
  kernels,
  weights_index,
  tuning_hints,
  objects,
  weights,
  signature
};
enum class codec : std::uint32_t { raw, zstd };

struct section_row {
  section_kind kind{};
  container::codec codec{};
  std::uint64_t offset = 0, stored_bytes = 0, raw_bytes = 0;
  content_hash hash;
};

struct file_header {
  std::uint32_t version = format_version;
  std::array<std::uint16_t, 3> written_by{};
  std::uint64_t file_bytes = 0;
  std::vector<section_row> sections;
};

// The smallest raw size that is refused for so few stored bytes: what a hostile file can make a reader allocate.
constexpr std::uint64_t max_expansion(std::uint64_t stored) { return (std::uint64_t{64} << 20) + stored * 1024; }

std::size_t alignment(section_kind kind);
std::vector<std::byte> encode_header(const file_header& header);
// Verifies the header, the table and that sections neither overlap nor leave anything but zeros between them.
file_header decode_header(std::span<const std::byte> file);

// "0.1.0" ↔ {0, 1, 0}.
std::array<std::uint16_t, 3> parse_version(std::string_view text);
std::string version_text(const std::array<std::uint16_t, 3>& version);

}  // namespace kiln::container

template <>
struct kiln::enum_table<kiln::container::section_kind> {
  static constexpr std::array<std::string_view, 8> names{"manifest",     "program", "kernels", "weights_index",
                                                         "tuning_hints", "objects", "weights", "signature"};
};
template <>
struct kiln::enum_table<kiln::container::codec> {
  static constexpr std::array<std::string_view, 2> names{"raw", "zstd"};
};
