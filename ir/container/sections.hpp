// Packs sections for writing, and verifies and unpacks them for reading. Also encodes the two sections that are lists
// of blobs: kernels and objects.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ir/container/container.hpp"
#include "ir/container/files.hpp"
#include "ir/container/format.hpp"

namespace kiln::container {

// A section that is ready to be written. `stored` holds the bytes as they will appear in the file.
struct packed_section {
  section_kind kind{};
  container::codec codec = codec::raw;
  std::uint64_t raw_bytes = 0;
  content_hash hash;
  std::vector<std::byte> stored;
};

// Compresses the section if that makes it smaller. Throws error{unsupported} above 2 GiB.
packed_section pack(section_kind kind, std::vector<std::byte> raw, int compression_level);

// The contents of section `weights`, which may be too large to pack in memory.
struct weights_section {
  std::uint64_t bytes = 0;
  std::function<void(output_file&)> write;
};

// Lays out the sections in the given order, followed by the weights, and writes the file atomically. Of `header` only
// the two versions are used.
void write_container(const std::filesystem::path& target, file_header header,
                     const std::vector<packed_section>& sections, const weights_section& weights);

// An open file whose header and table have been verified. A section is copied first and the copy is verified, so
// rewriting the file while it is open cannot change verified data.
class open_container {
 public:
  explicit open_container(const std::filesystem::path& file);
  const file_header& header() const { return header_; }
  // Throws error{corrupted} if there is no such section.
  const section_row& row(section_kind kind) const { return at(kind); }
  bool has(section_kind kind) const { return find(kind) != nullptr; }
  // The section's raw bytes, 16-byte aligned, valid as long as `this`.
  std::span<const std::byte> raw(section_kind kind);
  // The stored bytes of the section, verified.
  packed_section packed(section_kind kind) const;
  // Not verified; see verify_weights.
  std::span<const std::byte> weights() const;
  std::shared_ptr<const mapped_file> file() const { return file_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  const section_row* find(section_kind kind) const;
  const section_row& at(section_kind kind) const;
  std::vector<std::byte> stored(const section_row& row) const;  // verified
  std::filesystem::path path_;
  std::shared_ptr<const mapped_file> file_;
  file_header header_;
  std::vector<std::vector<std::byte>> unpacked_;
};

std::vector<std::byte> encode_kernels(const program::kernel_table& kernels);
// Verifies each payload against its hash.
program::kernel_table decode_kernels(std::span<const std::byte> section);

std::vector<std::byte> encode_objects(std::vector<embedded_object> objects);
std::vector<embedded_object> decode_objects(std::span<const std::byte> section);

// The version of the format that a file with this program needs (format.hpp).
std::uint32_t needed_version(const program& p);

// Makes the JSON that `inspect` shows to people. It repeats facts of the other sections and adds none.
std::string make_manifest(const program& p, const write_options& options);
// Throws error{corrupted} unless `text` is a JSON object of bounded depth.
void verify_manifest(std::string_view text);

}  // namespace kiln::container
