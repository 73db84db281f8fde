// The cache's bounded size: which entries there are, and which go first. Least recently used; the time of use is the
// file's modification time, set at every hit to later than any use before it, so that a clock that goes back changes no
// order.
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

// Files that are named like entries; whether they are any is not looked at. Unreadable folders have none.
std::vector<entry_file> list_entries(file_system& files, const std::filesystem::path& folder);
std::uint64_t total_bytes(const std::vector<entry_file>& entries);

struct eviction {
  std::uint64_t removed = 0, removed_bytes = 0, bytes_left = 0;
};

// Removes the least recently used entries until the rest has at most `bytes`; `kept` stays in any case.
eviction evict(file_system& files, const std::filesystem::path& folder, std::uint64_t bytes,
               std::string_view kept = {});

// Temporaries and locks that nobody can still be at work on: an hour old, or from an hour in the future. Returns how
// many went.
std::uint64_t sweep_temporaries(file_system& files, const std::filesystem::path& folder);

// The time to note for a use now.
std::int64_t next_use(std::int64_t latest, std::int64_t now);

}  // namespace kiln
