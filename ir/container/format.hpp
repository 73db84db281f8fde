// The outer layout of a `.kiln` file: header, section table, sections. All numbers are little-endian.
//
//   header, 64 bytes:
//     magic[8], u32 format version, u32 number of sections, u64 file size,
//     u16 major, u16 minor, u16 patch of the Kiln version that wrote it, u16 zero,
//     BLAKE3[32] of the header's first 32 bytes and the table
//   table, 64 bytes per section:
//     u32 kind, u32 codec, u64 offset, u64 stored size, u64 raw size, BLAKE3[32]
//   sections:
//     in the order of the table, each at a multiple of its alignment, with zeros as padding;
//     the last section ends at the end of the file
//
// The hash of a section covers its stored bytes. The section `weights` is the exception: each of its tensors has its
// own hash in `weights_index`, the hash in the table is that of the stored `weights_index`, and the padding between
// tensors is zero. So every byte of the file is either covered by a hash or required to be zero.
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
// The newest version that this Kiln reads. A file has the oldest version that does not mislead a reader:
//   1  everything else
//   2  a program without its weights (stripped.hpp): a reader of version 1 would compute with zeros
inline constexpr std::uint32_t format_version = 2;
inline constexpr std::size_t header_bytes = 64, table_row_bytes = 64, max_sections = 64;
inline constexpr std::size_t section_alignment = 16, weights_alignment = 4096, tensor_alignment = 64;
// FlatBuffers limits sections to 2 GiB. The limit does not apply to `weights`.
inline constexpr std::uint64_t max_raw_bytes = (std::uint64_t{1} << 31) - 1;

enum class section_kind : std::uint32_t {
  manifest,
  program,
  kernels,
  weights_index,
  tuning_hints,
  objects,
  weights,
  signature,
  steps
};
enum class codec : std::uint32_t { raw, zstd };

struct section_row {
  section_kind kind{};
  container::codec codec{};
  std::uint64_t offset = 0, stored_bytes = 0, raw_bytes = 0;
  content_hash hash;
};

struct file_header {
  std::uint32_t version = 1;
  std::array<std::uint16_t, 3> written_by{};
  std::uint64_t file_bytes = 0;
  std::vector<section_row> sections;
};

// Upper bound on the raw size of a section with this stored size. It limits how much memory a hostile file can make a
// reader allocate.
constexpr std::uint64_t max_expansion(std::uint64_t stored) { return (std::uint64_t{64} << 20) + stored * 1024; }

std::size_t alignment(section_kind kind);
std::vector<std::byte> encode_header(const file_header& header);
// Verifies the header and the table. Throws if sections overlap or if the padding between them is not zero.
file_header decode_header(std::span<const std::byte> file);

// "0.1.0" to {0, 1, 0} and back.
std::array<std::uint16_t, 3> parse_version(std::string_view text);
std::string version_text(const std::array<std::uint16_t, 3>& version);

}  // namespace kiln::container

template <>
struct kiln::enum_table<kiln::container::section_kind> {
  static constexpr std::array<std::string_view, 9> names{
      "manifest", "program", "kernels", "weights_index", "tuning_hints", "objects", "weights", "signature", "steps"};
};
template <>
struct kiln::enum_table<kiln::container::codec> {
  static constexpr std::array<std::string_view, 2> names{"raw", "zstd"};
};
