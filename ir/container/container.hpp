// The `.kiln` file: one program with its kernels and weights, written deterministically and read with every byte
// checked. Layout in format.hpp, schema in program.fbs.
//
// A damaged or hostile file gives error{truncated, corrupted, newer_version, unsupported}, one that cannot be opened
// error{missing_file}; a failing write gives error{io} and leaves the old file, if any, as it was. All functions may be
// called from any thread. A file that is open must not be rewritten in place (write_program renames, so it never is).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "ir/program.hpp"

namespace kiln {

struct native_consent;
class signing_key;

// The version of this Kiln, "0.1.0".
std::string_view kiln_version();

// A finished kernel that travels inside the file: a cache entry under its cache key, with the key's fields (payload,
// shapes, target, ...) beside it so that a person can see what it is for.
struct embedded_object {
  content_hash key;
  std::vector<std::pair<std::string, std::string>> fields;
  std::vector<std::byte> payload;
  friend bool operator==(const embedded_object&, const embedded_object&) = default;
};

// What is not part of the program and may change without it.
struct container_extras {
  std::string tuning_hints;              // text; empty: no such section
  std::vector<embedded_object> objects;  // stored in the order of their keys; empty: no such section
};

struct write_options {
  std::int64_t dialect_version = 1;  // of the kernels; shown in the manifest
  int compression_level = 12;        // zstd
  container_extras extras;
  const signing_key* sign_with =
      nullptr;  // signs native code objects, so that those who trust the key run them; not owned
};

// Same program, same Kiln, same options: same bytes. The program must be valid and hold every kernel it refers to.
void write_program(const program& p, const std::filesystem::path& file, const write_options& options = {});

// Every section is verified before it is used. Constants lie in the mapped file, which they keep alive; only folded
// ones (constant-filled tensors) are expanded into memory. Native code objects are refused (untrusted_native of
// ir/trust/native_consent.hpp) unless the file's signature is that of a key which `consent` trusts; without one nobody
// is trusted. So native code in a program was made by this process, or somebody has vouched for it.
program read_program(const std::filesystem::path& file, const native_consent& consent);
program read_program(const std::filesystem::path& file);
container_extras read_extras(const std::filesystem::path& file);

// Writes `source` again as `target` (they may be the same) with other extras and everything else byte for byte.
void replace_extras(const std::filesystem::path& source, const std::filesystem::path& target,
                    const container_extras& extras);

struct section_info {
  std::string kind, codec;  // "manifest", "program", ...; "raw" or "zstd"
  std::uint64_t offset = 0, stored_bytes = 0, raw_bytes = 0;
  content_hash hash;
};

struct kernel_info {
  content_hash hash;
  std::uint64_t bytes = 0;
};

struct container_info {
  std::uint32_t format_version = 0;
  std::string written_by;  // the Kiln version that wrote it
  std::uint64_t file_bytes = 0;
  std::vector<section_info> sections;
  std::string manifest;  // JSON
  std::vector<kernel_info> kernels;
  std::uint64_t tensors = 0, folded_tensors = 0, stored_weight_bytes = 0, full_weight_bytes = 0;
};

// What is inside, without reading the weights.
container_info inspect(const std::filesystem::path& file);

// Reads and verifies everything, the program included; returns when all is well.
void check(const std::filesystem::path& file);

}  // namespace kiln
