#include "jit/cache/eviction.hpp"

#include <algorithm>
#include <tuple>

#include "jit/cache/entry.hpp"
#include "jit/cache/file_operations.hpp"
#include "jit/cache/work_claim.hpp"

namespace kiln {
namespace {

constexpr std::int64_t hour = std::int64_t{3600} * 1'000'000'000;

}  // namespace

bool is_entry_name(std::string_view name) {
  std::string_view digits = name.substr(0, name.find('.'));
  entry_kind kind;
  bool hex = digits.size() == 64 &&
             std::ranges::all_of(digits, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  return hex && name.size() > 65 && parse_enum(name.substr(65), kind);
}

std::vector<entry_file> list_entries(file_system& files, const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::vector<entry_file> entries;
  if (files.list(folder, names) != 0) return entries;
  for (std::string& name : names) {
    file_status status;
    if (!is_entry_name(name) || files.status(folder / name, false, status) != 0 || !status.is_regular) continue;
    entries.push_back({std::move(name), status.bytes, status.modified});
  }
  return entries;
}

std::uint64_t total_bytes(const std::vector<entry_file>& entries) {
  std::uint64_t total = 0;
  for (const entry_file& e : entries) total += e.bytes;
  return total;
}

eviction evict(file_system& files, const std::filesystem::path& folder, std::uint64_t bytes, std::string_view kept) {
  auto entries = list_entries(files, folder);
  // Break ties by name, so that processes that evict at the same time choose the same entries.
  std::ranges::sort(entries, {}, [](const entry_file& e) { return std::tie(e.last_use, e.name); });
  eviction done;
  done.bytes_left = total_bytes(entries);
  for (const entry_file& e : entries) {
    if (done.bytes_left <= bytes) break;
    if (e.name == kept || files.remove(folder / e.name) != 0) continue;
    done.bytes_left -= e.bytes;
    done.removed_bytes += e.bytes;
    ++done.removed;
  }
  return done;
}

std::uint64_t sweep_temporaries(file_system& files, const std::filesystem::path& folder) {
  std::vector<std::string> names;
  if (files.list(folder, names) != 0) return 0;
  std::uint64_t swept = 0;
  for (const std::string& name : names) {
    file_status status;
    if (!(name.starts_with(temporary_prefix) || name.starts_with(lock_prefix)) ||
        files.status(folder / name, false, status) != 0)
      continue;
    std::int64_t age = files.now() - status.modified;
    if ((age > hour || age < -hour) && files.remove(folder / name) == 0) ++swept;
  }
  return swept;
}

std::int64_t next_use(std::int64_t latest, std::int64_t now) {
  return latest < now ? now : latest == INT64_MAX ? latest : latest + 1;
}

}  // namespace kiln
