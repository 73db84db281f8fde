// `kiln cache export` and `import`: sound entries from one folder or archive (archive.hpp) to another, byte for byte,
// and the tuning records (files of the folder `records`) with them. Throws error{io, missing_file, truncated,
// corrupted} where a side cannot be used; what is wrong with single entries is counted.
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
  std::uint64_t copied = 0, present = 0;     // entries; those that were there already
  std::uint64_t damaged = 0, untrusted = 0;  // left out
  std::uint64_t records = 0;                 // tuning records copied or merged
  std::uint64_t other = 0;                   // members of an archive that are neither, left out
  std::uint64_t bytes = 0;                   // of the entries that were copied
};

struct transfer_options {
  std::function<bool(const entry_head&)> wanted = nullptr;  // null: all
  std::optional<signing_key> sign_with = {};                // signs what is copied, in place of any signature
  std::optional<signing_key> sign_unsigned_with =
      {};  // signs what bears no signature; leaves out entries that others can change
  std::optional<native_consent> consent = {};  // leaves out what it has no trust in; none: takes all
  // What becomes of a tuning record that arrives: the bytes to write, or none to leave things as they are. `there` is
  // empty where the target has no such record. Null: a record that is there stays. May throw kiln::error for a record
  // that is none, which counts as damaged.
  std::function<std::optional<std::vector<std::byte>>(const std::string& name, std::span<const std::byte> arriving,
                                                      std::span<const std::byte> there)>
      merge_record = nullptr;
};

// A folder as a target is made, mode 0700, where it is missing, and serves as a read-only layer as it is; an archive is
// written anew, with its members in the order of their names. An entry that is in the target folder, and sound, stays
// as it is, unless it is to be signed by another.
cache_copy copy_cache(const std::filesystem::path& from, const std::filesystem::path& to,
                      const transfer_options& options = {}, file_system& files = posix_file_system());

}  // namespace kiln
