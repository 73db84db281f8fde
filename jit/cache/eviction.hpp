// Bounds the size of the cache by evicting the least recently used entries. The time of use is the file's modification
// time. Every hit sets it to a time later than all uses before, so the order stays right if the clock goes back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "jit/cache/file_system.hpp"

namespace kiln {

struct entry_file {
  std::string name;
  std::uint64_t bytes = 0;
  std::int64_t last_use = 0;  // nanoseconds since 1970
};

// "<64 hex digits>.kernel" or ".prepared".
bool is_entry_name(std::string_view name);

// Files whose names are those of entries. Their contents are not checked. An unreadable folder gives an empty list.
std::vector<entry_file> list_entries(file_system& files, const std::filesystem::path& folder);
std::uint64_t total_bytes(const std::vector<entry_file>& entries);

struct eviction {
  std::uint64_t removed = 0, removed_bytes = 0, bytes_left = 0;
};

// Removes the least recently used entries until at most `bytes` are left. The entry called `kept` is never removed.
eviction evict(file_system& files, const std::filesystem::path& folder, std::uint64_t bytes,
               std::string_view kept = {});

// Removes stale temporaries and lock files: those more than an hour old, or dated more than an hour in the future.
// Returns how many were removed.
std::uint64_t sweep_temporaries(file_system& files, const std::filesystem::path& folder);

// The time to record for a use now: later than `latest`, the last recorded use, even if the clock went back.
std::int64_t next_use(std::int64_t latest, std::int64_t now);

}  // namespace kiln
