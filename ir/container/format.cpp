#include "ir/container/format.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "ir/container/container.hpp"
#include "ir/error.hpp"

namespace kiln::container {
namespace {

constexpr std::size_t hashed_header_bytes = 32;

template <class T>
void put(std::vector<std::byte>& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i)));
}

void put(std::vector<std::byte>& out, const content_hash& hash) {
  for (std::uint8_t b : hash.bytes) out.push_back(static_cast<std::byte>(b));
}

// Reads consecutive fields. The caller has checked that there are enough bytes.
class cursor {
 public:
  explicit cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <class T>
  T get() {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) value |= std::uint64_t(bytes_[at_ + i]) << (8 * i);
    at_ += sizeof(T);
    return static_cast<T>(value);
  }
  content_hash hash() {
    content_hash value;
    std::memcpy(value.bytes.data(), bytes_.data() + at_, value.bytes.size());
    at_ += value.bytes.size();
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

content_hash hash_of_frame(std::span<const std::byte> header, std::span<const std::byte> table) {
  std::vector<std::byte> covered(header.begin(), header.begin() + hashed_header_bytes);
  covered.insert(covered.end(), table.begin(), table.end());
  return blake3(covered);
}

void put(std::vector<std::byte>& out, const section_row& row) {
  put(out, static_cast<std::uint32_t>(row.kind));
  put(out, static_cast<std::uint32_t>(row.codec));
  put(out, row.offset);
  put(out, row.stored_bytes);
  put(out, row.raw_bytes);
  put(out, row.hash);
}

section_row get_row(cursor& in) {
  section_row row;
  row.kind = static_cast<section_kind>(in.get<std::uint32_t>());
  row.codec = static_cast<codec>(in.get<std::uint32_t>());
  row.offset = in.get<std::uint64_t>();
  row.stored_bytes = in.get<std::uint64_t>();
  row.raw_bytes = in.get<std::uint64_t>();
  row.hash = in.hash();
  return row;
}

[[noreturn]] void corrupted(const std::string& what) { throw error(error_kind::corrupted, what); }

void check_row(const section_row& row, const std::string& writer) {
  if (static_cast<std::size_t>(row.kind) >= enum_table<section_kind>::names.size() ||
      static_cast<std::size_t>(row.codec) >= enum_table<codec>::names.size())
    throw error(error_kind::newer_version, "holds a section that this Kiln " + std::string(kiln_version()) +
                                               " does not know: needs Kiln " + writer);
  std::string name(enum_name(row.kind));
  if (row.offset % alignment(row.kind) != 0) corrupted("section " + name + " is not aligned");
  if (row.codec == codec::raw && row.stored_bytes != row.raw_bytes)
    corrupted("section " + name + " is uncompressed, but its stored and raw sizes differ");
  if (row.kind == section_kind::weights) {
    if (row.codec != codec::raw) corrupted("the weights are compressed");
  } else if (row.raw_bytes > max_raw_bytes ||
             (row.codec == codec::zstd && row.raw_bytes > max_expansion(row.stored_bytes))) {
    corrupted("section " + name + " claims to be " + std::to_string(row.raw_bytes) + " bytes long");
  }
}

}  // namespace

std::size_t alignment(section_kind kind) {
  return kind == section_kind::weights ? weights_alignment : section_alignment;
}

std::vector<std::byte> encode_header(const file_header& header) {
  std::vector<std::byte> table;
  for (const section_row& row : header.sections) put(table, row);
  std::vector<std::byte> out;
  for (std::uint8_t b : magic) put(out, b);
  put(out, header.version);
  put(out, static_cast<std::uint32_t>(header.sections.size()));
  put(out, header.file_bytes);
  for (std::uint16_t part : header.written_by) put(out, part);
  put(out, std::uint16_t{0});
  put(out, hash_of_frame(out, table));
  out.insert(out.end(), table.begin(), table.end());
  return out;
}

file_header decode_header(std::span<const std::byte> file) {
  std::size_t seen = std::min(file.size(), magic.size());
  if (seen > 0 && std::memcmp(file.data(), magic.data(), seen) != 0)
    corrupted("not a .kiln file: the magic bytes are wrong; kiln compile makes one of an ONNX model");
  if (file.size() < header_bytes) throw error(error_kind::truncated, "ends within its header");
  cursor in(file.subspan(magic.size()));
  file_header header;
  header.version = in.get<std::uint32_t>();
  auto sections = in.get<std::uint32_t>();
  header.file_bytes = in.get<std::uint64_t>();
  for (std::uint16_t& part : header.written_by) part = in.get<std::uint16_t>();
  in.get<std::uint16_t>();
  content_hash hash = in.hash();
  std::string writer = version_text(header.written_by);
  if (header.version > format_version)
    throw error(error_kind::newer_version, "has format version " + std::to_string(header.version) + ", this Kiln " +
                                               std::string(kiln_version()) + " reads up to " +
                                               std::to_string(format_version) + ": needs Kiln " + writer + " or newer");
  if (header.version == 0) corrupted("has format version 0, which does not exist");
  if (sections > max_sections) corrupted("claims to have " + std::to_string(sections) + " sections");
  std::size_t table_end = header_bytes + sections * table_row_bytes;
  if (file.size() < table_end) throw error(error_kind::truncated, "is truncated within its section table");
  auto table = file.subspan(header_bytes, sections * table_row_bytes);
  if (hash != hash_of_frame(file, table)) corrupted("its section table does not match its hash");
  if (file.size() < header.file_bytes)
    throw error(error_kind::truncated, "is " + std::to_string(file.size()) + " bytes long instead of " +
                                           std::to_string(header.file_bytes) + ": copy it again");
  if (file.size() > header.file_bytes) corrupted("has bytes after its end");

  cursor rows(table);
  std::uint64_t end = table_end, kinds = 0;
  for (std::uint32_t i = 0; i < sections; ++i) {
    section_row row = get_row(rows);
    check_row(row, writer);
    std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(row.kind);
    if (kinds & bit) corrupted("has section " + std::string(enum_name(row.kind)) + " twice");
    kinds |= bit;
    if (row.offset < end || row.offset > file.size() || row.stored_bytes > file.size() - row.offset ||
        row.offset - end >= weights_alignment)
      corrupted("section " + std::string(enum_name(row.kind)) + " is out of place");
    auto gap = file.subspan(end, row.offset - end);
    if (std::ranges::any_of(gap, [](std::byte b) { return b != std::byte{0}; }))
      corrupted("has bytes between its sections");
    end = row.offset + row.stored_bytes;
    header.sections.push_back(row);
  }
  if (end != file.size()) corrupted("its last section does not end at the end of the file");
  return header;
}

std::array<std::uint16_t, 3> parse_version(std::string_view text) {
  std::array<std::uint16_t, 3> version{};
  const char* at = text.data();
  for (std::uint16_t& part : version) {
    at = std::from_chars(at, text.data() + text.size(), part).ptr;
    if (at != text.data() + text.size()) ++at;
  }
  return version;
}

std::string version_text(const std::array<std::uint16_t, 3>& version) {
  return std::to_string(version[0]) + "." + std::to_string(version[1]) + "." + std::to_string(version[2]);
}

}  // namespace kiln::container
