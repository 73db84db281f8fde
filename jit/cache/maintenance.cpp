#include "jit/cache/maintenance.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ir/error.hpp"
#include "jit/cache/file_operations.hpp"
#include "jit/cache/signature.hpp"
#include "jit/cache/transfer.hpp"

namespace kiln {
namespace {

void require_folder(file_system& files, const std::filesystem::path& folder) {
  file_status status;
  int code = files.status(folder, true, status);
  if (code == 0 && !status.is_folder) code = ENOTDIR;
  if (code != 0)
    throw error(error_kind::missing_file, folder.string() + ": is not a cache folder: " + std::strerror(code));
}

std::optional<entry_head> read_head(file_system& files, const std::filesystem::path& file) {
  try {
    std::vector<std::byte> bytes;
    if (read_file(files, file, entry_header_bytes + max_field_bytes, bytes)) return std::nullopt;
    return decode_entry_head(bytes);
  } catch (const error&) {
    return std::nullopt;
  }
}

// Maps an entry and verifies it completely, including its file name. Returns what is wrong, or "".
std::string load_entry(file_system& files, const std::filesystem::path& file, mapping& mapped, entry_head& head) {
  if (auto failure = map_file(files, file, mapped)) return failure.text();
  try {
    head = verify_entry(mapped.bytes);
    if (file.filename().string() != entry_file_name(head.key, head.kind)) return "its name does not match its key";
    return {};
  } catch (const std::exception& e) {
    return e.what();
  }
}

std::vector<field_difference> compare(const key_fields& wanted, const key_fields& found) {
  std::vector<field_difference> differences;
  for (const auto& [name, value] : wanted)
    if (auto other = field(found, name); other != value) differences.push_back({name, value, std::string(other)});
  for (const auto& [name, value] : found)
    if (std::ranges::none_of(wanted, [&](const auto& f) { return f.first == name; }))
      differences.push_back({name, "", value});
  return differences;
}

}  // namespace

cache_statistics cache_stats(const std::filesystem::path& folder, file_system& files) {
  require_folder(files, folder);
  cache_statistics stats;
  for (const entry_file& e : list_entries(files, folder)) {
    auto head = read_head(files, folder / e.name);
    if (!head) {
      ++stats.unreadable;
      continue;
    }
    bool kernel = head->kind == entry_kind::kernel;
    ++(kernel ? stats.kernels : stats.prepared);
    (kernel ? stats.kernel_bytes : stats.prepared_bytes) += e.bytes;
    ++stats.by_target[std::string(field(head->fields, "target"))];
    if (stats.oldest_use == 0 || e.last_use < stats.oldest_use) stats.oldest_use = e.last_use;
    stats.newest_use = std::max(stats.newest_use, e.last_use);
  }
  std::vector<std::string> names;
  if (int code = files.list(folder, names))
    throw error(error_kind::io, folder.string() + ": cannot be listed: " + std::strerror(code));
  stats.temporaries = static_cast<std::uint64_t>(
      std::ranges::count_if(names, [](const std::string& n) { return n.starts_with(temporary_prefix); }));
  if (int code = files.list(folder / records_folder_name, names)) {
    if (code != ENOENT)
      throw error(error_kind::io,
                  (folder / records_folder_name).string() + ": cannot be listed: " + std::strerror(code));
  } else {
    stats.records = static_cast<std::uint64_t>(
        std::ranges::count_if(names, [](const std::string& n) { return n.ends_with(".json"); }));
  }
  return stats;
}

cache_verification verify_cache(const std::filesystem::path& folder, bool remove, file_system& files) {
  require_folder(files, folder);
  cache_verification result;
  for (const entry_file& e : list_entries(files, folder)) {
    mapping mapped;
    entry_head head;
    ++result.checked;
    std::string why = load_entry(files, folder / e.name, mapped, head);
    if (why.empty()) continue;
    if (remove)
      if (int code = files.remove(folder / e.name))
        throw error(error_kind::io, (folder / e.name).string() + ": cannot be removed: " + std::strerror(code));
    result.damaged.push_back({e.name, std::move(why)});
  }
  return result;
}

eviction collect_cache(const std::filesystem::path& folder, std::uint64_t max_bytes, file_system& files) {
  require_folder(files, folder);
  sweep_temporaries(files, folder);
  return evict(files, folder, max_bytes);
}

cache_explanation explain_cache(const std::vector<std::filesystem::path>& folders, const kernel_key& wanted,
                                entry_kind kind, const embedded_entries* embedded, const native_consent* consent,
                                file_system& files) {
  cache_explanation result;
  const key_fields fields = wanted.fields();
  const content_hash key = wanted.hash();
  auto consider = [&](const entry_head& other) {
    if (other.kind != kind || other.key == key || field(other.fields, "payload") != wanted.payload) return;
    auto differences = compare(fields, other.fields);
    if (result.nearest && differences.size() >= result.differences.size()) return;
    result.nearest = other.key;
    result.differences = std::move(differences);
  };
  for (const auto& folder : folders) {
    require_folder(files, folder);
    mapping mapped;
    entry_head head;
    if (load_entry(files, folder / entry_file_name(key, kind), mapped, head).empty())
      return {true, folder.string(), key, {}};
    for (const entry_file& e : list_entries(files, folder))
      if (auto other = read_head(files, folder / e.name)) consider(*other);
  }
  if (!embedded) return result;
  for (const auto& [name, entry] : embedded->all()) {
    try {
      entry_head head = verify_entry(entry);
      if (consent && !consent->trusts(signer_of(entry, head.file_bytes()))) continue;
      if (head.key == key && head.kind == kind) return {true, embedded->file().string(), key, {}};
      consider(head);
    } catch (const error&) {
      continue;  // a damaged entry is a miss, as in a run
    }
  }
  return result;
}

}  // namespace kiln
