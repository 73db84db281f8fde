// Implements `kiln cache export` and `import`: copies valid entries from one folder or archive (archive.hpp) to
// another, byte for byte, together with the tuning records (the files of the folder `records`). Throws error{io,
// missing_file, truncated, corrupted} if the source or target cannot be used. Problems of single entries are only
// counted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/trust/native_consent.hpp"
#include "jit/cache/entry.hpp"
#include "jit/cache/file_system.hpp"
#include "jit/cache/signature.hpp"

namespace kiln {

inline constexpr const char* records_folder_name = "records";

struct cache_copy {
  std::uint64_t copied = 0, present = 0;     // entries that were copied, and that were already there
  std::uint64_t damaged = 0, untrusted = 0;  // entries that were left out
  std::uint64_t records = 0;                 // tuning records that were copied or merged
  std::uint64_t other = 0;                   // members of an archive that are neither entries nor records, left out
  std::uint64_t bytes = 0;                   // total size of the copied entries
};

struct transfer_options {
  std::function<bool(const entry_head&)> wanted = nullptr;  // null: all
  std::optional<signing_key> sign_with = {};                // signs every copied entry, replacing any earlier signature
  // Signs entries that have no signature. Entries that other users can change are then left out.
  std::optional<signing_key> sign_unsigned_with = {};
  std::optional<native_consent> consent = {};  // leaves out entries that it does not trust; none: takes all
  // Merges an arriving tuning record with the target's. Returns the bytes to write, or nothing to keep the target as it
  // is. `there` is empty if the target has no such record. Null: existing records stay. May throw kiln::error for an
  // invalid record, which then counts as damaged.
  std::function<std::optional<std::vector<std::byte>>(const std::string& name, std::span<const std::byte> arriving,
                                                      std::span<const std::byte> there)>
      merge_record = nullptr;
};

// Copies entries and records. A missing target folder is created with mode 0700; it can be used as a read-only layer.
// An archive is rewritten, with its members sorted by name. A valid entry that is already in the target folder stays
// unchanged, unless it is to be signed by another key.
cache_copy copy_cache(const std::filesystem::path& from, const std::filesystem::path& to,
                      const transfer_options& options = {}, file_system& files = posix_file_system());

}  // namespace kiln
