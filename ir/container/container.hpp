// The `.kiln` file: one program with its kernels and weights, written deterministically and read with every byte
// checked. Layout in format.hpp, schema in program.fbs.
//
// Reading a damaged or hostile file throws error{truncated, corrupted, newer_version, unsupported}; a file that cannot
// be opened throws error{missing_file}. A failing write throws error{io} and leaves an existing file unchanged. All
// functions may be called from any thread. An open file must not be rewritten in place; write_program is safe because
// it writes a new file and renames it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/program.hpp"

namespace kiln {

struct native_consent;
class signing_key;

// The version of this Kiln, "0.1.0".
std::string_view kiln_version();

// A native kernel stored inside the file: a kernel cache entry and its cache key. The fields of the key (payload,
// shapes, target, ...) are stored too, so that a person can see what the entry is for.
struct embedded_object {
  content_hash key;
  std::vector<std::pair<std::string, std::string>> fields;
  std::vector<std::byte> payload;
  friend bool operator==(const embedded_object&, const embedded_object&) = default;
};

// Data outside the program, which may change without changing the program.
struct container_extras {
  std::string tuning_hints;              // text; if empty, the section is omitted
  std::vector<embedded_object> objects;  // stored in the order of their keys; if empty, the section is omitted
};

struct write_options {
  std::int64_t dialect_version = 1;  // version of the kernels' dialect; shown in the manifest
  int compression_level = 12;        // zstd
  container_extras extras;
  // The form of a decoder that updates its caches in place (aot/caches_in_place.hpp), stored beside the program with
  // the same kernels and weights. Its code objects must be portable. Not owned; null: the file has none.
  const program* steps = nullptr;
  // Signs native code and custom operators (signed_native.hpp), so that who trusts the key can run them. Not owned.
  const signing_key* sign_with = nullptr;
};

// Deterministic: the same program, Kiln version and options give the same bytes. The program must be valid and contain
// every kernel that it refers to.
void write_program(const program& p, const std::filesystem::path& file, const write_options& options = {});

// Weights that a reader may leave unverified until they are first read (literal.hpp).
enum class weight_check { at_once, when_read };

// Every section is verified before it is used, the larger weights when they are first read if `check` allows it.
// Constants lie in the mapped file, which they keep alive; only folded ones (constant-filled tensors) are expanded into
// memory. Native code objects and HIP kernels of custom operators are refused (error{untrusted}) unless the file's
// signature is that of a key which `consent` trusts; without one nobody is trusted. So code that can do anything was
// made by this process, or somebody has vouched for it.
program read_program(const std::filesystem::path& file, const native_consent& consent,
                     weight_check check = weight_check::at_once);
program read_program(const std::filesystem::path& file);
// The form of a decoder that updates its caches in place; nullopt if the file has none. Throws what read_program
// throws.
std::optional<program> read_steps(const std::filesystem::path& file);
container_extras read_extras(const std::filesystem::path& file);

// Copies `source` to `target` (they may be the same file) with new extras. Everything else is copied byte for byte.
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

// Describes the contents of a file without reading its weights.
container_info inspect(const std::filesystem::path& file);

// Reads and verifies the whole file, including the program. Throws the errors listed above if anything is wrong.
void check(const std::filesystem::path& file);

}  // namespace kiln
