// Implements `kiln cache stats`, `verify`, `gc` and `explain`; export and import are in transfer.hpp. Unlike the cache
// itself these functions report problems: they throw error{io, missing_file} if the folder cannot be used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/trust/native_consent.hpp"
#include "jit/cache/embedded_entries.hpp"
#include "jit/cache/entry.hpp"
#include "jit/cache/eviction.hpp"
#include "jit/cache/file_system.hpp"

namespace kiln {

struct cache_statistics {
  std::uint64_t kernels = 0, prepared = 0;  // entries of each kind
  std::uint64_t kernel_bytes = 0, prepared_bytes = 0;
  std::uint64_t unreadable = 0;  // have the name of an entry, but a damaged header
  std::uint64_t temporaries = 0;
  std::uint64_t records = 0;                       // tuning records
  std::map<std::string, std::uint64_t> by_target;  // number of entries for each value of the field `target`
  std::int64_t oldest_use = 0, newest_use = 0;     // nanoseconds since 1970; 0 if there are no entries
};
cache_statistics cache_stats(const std::filesystem::path& folder, file_system& files = posix_file_system());

struct damaged_entry {
  std::string name, why;
};
struct cache_verification {
  std::uint64_t checked = 0;
  std::vector<damaged_entry> damaged;
};
// Reads and verifies every entry completely. With `remove`, damaged entries are deleted.
cache_verification verify_cache(const std::filesystem::path& folder, bool remove,
                                file_system& files = posix_file_system());

// Sweeps stale temporaries and removes the least recently used entries until at most `max_bytes` are left.
eviction collect_cache(const std::filesystem::path& folder, std::uint64_t max_bytes,
                       file_system& files = posix_file_system());

struct field_difference {
  std::string field, wanted, found;
};
struct cache_explanation {
  bool hit = false;
  std::string layer;                          // on a hit: the folder, or the file whose embedded entries have it
  std::optional<content_hash> nearest;        // the entry of the same payload and kind with the fewest differing fields
  std::vector<field_difference> differences;  // empty on a hit, or if there is no entry of this payload
};
// Explains why `wanted` is a hit or a miss. Looks in all folders in order, then among the embedded entries (null:
// none). Embedded entries count only if `consent` trusts them (null: all count).
cache_explanation explain_cache(const std::vector<std::filesystem::path>& folders, const kernel_key& wanted,
                                entry_kind kind = entry_kind::kernel, const embedded_entries* embedded = nullptr,
                                const native_consent* consent = nullptr, file_system& files = posix_file_system());

}  // namespace kiln
