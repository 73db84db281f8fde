#include "ir/container/sections.hpp"

#include <zstd.h>

#include "ir/container/compression.hpp"
#include "ir/error.hpp"

namespace kiln::container {
namespace {

std::string section_name(section_kind kind) { return "section " + std::string(enum_name(kind)); }

std::vector<std::byte> decompress(std::span<const std::byte> stored, std::uint64_t raw_bytes, section_kind kind) {
  auto raw = decompress_frame(stored, raw_bytes);
  if (!raw) throw error(error_kind::corrupted, section_name(kind) + " cannot be decompressed");
  return *std::move(raw);
}

}  // namespace

packed_section pack(section_kind kind, std::vector<std::byte> raw, int compression_level) {
  if (raw.size() > max_raw_bytes)
    throw error(error_kind::unsupported, section_name(kind) + " is larger than 2 GiB: split the model");
  packed_section result{kind, codec::raw, raw.size(), {}, {}};
  std::vector<std::byte> compressed(ZSTD_compressBound(raw.size()));
  std::size_t size = ZSTD_compress(compressed.data(), compressed.size(), raw.data(), raw.size(), compression_level);
  if (ZSTD_isError(size))
    throw error(error_kind::internal, section_name(kind) + " cannot be compressed: " + ZSTD_getErrorName(size));
  if (size < raw.size() && raw.size() <= max_expansion(size)) {
    compressed.resize(size);
    result.codec = codec::zstd;
    result.stored = std::move(compressed);
  } else {
    result.stored = std::move(raw);
  }
  result.hash = blake3(result.stored);
  return result;
}

void write_container(const std::filesystem::path& target, file_header header,
                     const std::vector<packed_section>& sections, const weights_section& weights) {
  header.sections.clear();
  std::uint64_t end = header_bytes + (sections.size() + 1) * table_row_bytes;
  auto place = [&](section_kind kind, container::codec how, std::uint64_t stored, std::uint64_t raw,
                   const content_hash& hash) {
    std::uint64_t step = alignment(kind), offset = (end + step - 1) / step * step;
    header.sections.push_back({kind, how, offset, stored, raw, hash});
    end = offset + stored;
  };
  content_hash index_hash;
  for (const packed_section& s : sections) {
    if (s.kind == section_kind::weights_index) index_hash = s.hash;
    place(s.kind, s.codec, s.stored.size(), s.raw_bytes, s.hash);
  }
  place(section_kind::weights, codec::raw, weights.bytes, weights.bytes, index_hash);
  header.file_bytes = end;

  output_file out(target);
  out.write(encode_header(header));
  for (std::size_t i = 0; i < sections.size(); ++i) {
    out.pad_to(header.sections[i].offset);
    out.write(sections[i].stored);
  }
  out.pad_to(header.sections.back().offset);
  weights.write(out);
  if (out.size() != header.file_bytes)
    throw error(error_kind::internal, target.string() + ": the size of the weights differs from the announced size");
  out.commit();
}

open_container::open_container(const std::filesystem::path& file)
    : path_(file), file_(mapped_file::open(file)), header_(decode_header(file_->bytes())) {
  for (auto kind : {section_kind::manifest, section_kind::program, section_kind::kernels, section_kind::weights_index,
                    section_kind::weights})
    at(kind);
  if (at(section_kind::weights).hash != at(section_kind::weights_index).hash)
    throw error(error_kind::corrupted, "the weights do not match the weights index");
}

const section_row* open_container::find(section_kind kind) const {
  for (const section_row& row : header_.sections)
    if (row.kind == kind) return &row;
  return nullptr;
}

const section_row& open_container::at(section_kind kind) const {
  const section_row* row = find(kind);
  if (!row) throw error(error_kind::corrupted, section_name(kind) + " is missing");
  return *row;
}

std::vector<std::byte> open_container::stored(const section_row& row) const {
  auto in_file = file_->bytes().subspan(row.offset, row.stored_bytes);
  std::vector<std::byte> bytes(in_file.begin(), in_file.end());
  if (blake3(bytes) != row.hash)
    throw error(error_kind::corrupted, section_name(row.kind) + " does not match its hash");
  return bytes;
}

std::span<const std::byte> open_container::raw(section_kind kind) {
  const section_row& row = at(kind);
  auto bytes = stored(row);
  return unpacked_.emplace_back(row.codec == codec::raw ? std::move(bytes) : decompress(bytes, row.raw_bytes, kind));
}

packed_section open_container::packed(section_kind kind) const {
  const section_row& row = at(kind);
  return {kind, row.codec, row.raw_bytes, row.hash, stored(row)};
}

std::span<const std::byte> open_container::weights() const {
  const section_row& row = at(section_kind::weights);
  return file_->bytes().subspan(row.offset, row.stored_bytes);
}

}  // namespace kiln::container
