// Sections as the frame holds them: packed for writing, verified and unpacked for reading; and the two sections that
// are lists of blobs, kernels and objects.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ir/container/container.hpp"
#include "ir/container/files.hpp"
#include "ir/container/format.hpp"

namespace kiln::container {

// A section ready to be written; `stored` are the bytes as they will lie in the file.
struct packed_section {
  section_kind kind{};
  container::codec codec = codec::raw;
  std::uint64_t raw_bytes = 0;
  content_hash hash;
  std::vector<std::byte> stored;
};

// Compressed where that makes it smaller. Throws error{unsupported} for more than 2 GiB.
packed_section pack(section_kind kind, std::vector<std::byte> raw, int compression_level);

// What fills section `weights`, which is too large to be packed.
struct weights_section {
  std::uint64_t bytes = 0;
  std::function<void(output_file&)> write;
};

// Lays the sections out in the given order, the weights last, and writes the file in one atomic step.
void write_container(const std::filesystem::path& target, const std::array<std::uint16_t, 3>& written_by,
                     const std::vector<packed_section>& sections, const weights_section& weights);

// An open file whose frame has been verified. Reading a section copies it and then verifies the copy's hash: whoever
// rewrites the file while it is open cannot change what was verified.
class open_container {
 public:
  explicit open_container(const std::filesystem::path& file);
  const file_header& header() const { return header_; }
  const section_row& row(section_kind kind) const {
    return at(kind);
  }  // throws error{corrupted} where there is no such section
  bool has(section_kind kind) const { return find(kind) != nullptr; }
  // The section's raw bytes, 16-byte aligned, valid as long as `this`.
  std::span<const std::byte> raw(section_kind kind);
  // As they lie in the file, verified.
  packed_section packed(section_kind kind) const;
  // Not verified: that is verify_weights' part.
  std::span<const std::byte> weights() const;
  std::shared_ptr<const mapped_file> file() const { return file_; }

 private:
  const section_row* find(section_kind kind) const;
  const section_row& at(section_kind kind) const;
  std::vector<std::byte> stored(const section_row& row) const;  // verified
  std::shared_ptr<const mapped_file> file_;
  file_header header_;
  std::vector<std::vector<std::byte>> unpacked_;
};

std::vector<std::byte> encode_kernels(const program::kernel_table& kernels);
// Verifies each payload against its hash.
program::kernel_table decode_kernels(std::span<const std::byte> section);

std::vector<std::byte> encode_objects(std::vector<embedded_object> objects);
std::vector<embedded_object> decode_objects(std::span<const std::byte> section);

// JSON for people; `inspect` shows it. Says nothing that the other sections do not say.
std::string make_manifest(const program& p, const write_options& options);
// Throws error{corrupted} unless it is a JSON object of bounded depth.
void verify_manifest(std::string_view text);

}  // namespace kiln::container
