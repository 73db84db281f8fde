#include "jit/cache/kernel_cache.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>

#include "ir/error.hpp"
#include "jit/cache/eviction.hpp"
#include "jit/cache/file_operations.hpp"
#include "jit/cache/folder.hpp"

namespace kiln {
namespace {

// What no kernel is larger than: a damaged size must not make us read or allocate without end.
constexpr std::size_t max_kernel_entry_bytes = std::size_t{1} << 31;

}  // namespace

std::unique_ptr<kernel_cache> kernel_cache::open(cache_options options) { return std::unique_ptr<kernel_cache>(new kernel_cache(std::move(options))); }

kernel_cache::kernel_cache(cache_options options)
    : files_(options.files ? *options.files : posix_file_system()), warn_(std::move(options.warn)),
      remote_(options.remote, [this](const std::string& why) { problem(remote_.name(), "cannot be reached", why); }), max_bytes_(options.max_bytes) {
  std::error_code failed;
  if (!options.folder.empty()) {
    auto folder = std::filesystem::absolute(options.folder, failed).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();  // "cache/" is "cache"
    std::string why = failed ? failed.message() : prepare_cache_folder(files_, folder);
    if (why.empty()) folder_ = std::move(folder);
    else problem(options.folder, why, "running without it");
  }
  for (const auto& layer : options.read_only_layers) {
    std::string why = refuse_layer(files_, layer);
    if (why.empty()) layers_.push_back(layer);
    else problem(layer, why, "running without this layer");
  }
  if (!folder_.empty()) sweep_temporaries(files_, folder_);
}

void kernel_cache::problem(const std::filesystem::path& folder, std::string_view what, const std::string& detail) {
  ++errors_;
  {
    std::lock_guard lock(mutex_);
    if (!reported_.insert(folder.string() + '\n' + std::string(what)).second) return;
  }
  std::string message = "kernel cache " + folder.string() + " " + std::string(what) + (detail.empty() ? "" : ": " + detail);
  if (warn_) warn_(message);
  else spdlog::warn(message);
}

template <class Result, class Load>
std::optional<Result> kernel_cache::find_anywhere(const content_hash& key, entry_kind kind, Load load) {
  const std::string name = entry_file_name(key, kind);
  auto look = [&](const std::filesystem::path& folder, bool ours) -> std::optional<Result> {
    try {
      Result result;
      file_failure failure = load(folder / name, result);
      if (!failure) return result;
      if (failure.code != ENOENT) problem(folder, "cannot be read", failure.text());
    } catch (const error& e) {
      problem(folder, "holds damaged entries, which are made again", name + ": " + e.what());
      if (ours) {
        files_.remove(folder / name);  // whether that works or not: the next store replaces it
        std::lock_guard lock(mutex_);
        damaged_.insert(name);
      }
    } catch (const std::bad_alloc&) {
      problem(folder, "cannot be read", "out of memory");
    }
    return std::nullopt;
  };
  std::optional<Result> found;
  if (!folder_.empty() && (found = look(folder_, true))) {
    std::int64_t use;
    {
      std::lock_guard lock(mutex_);
      use = latest_use_ = next_use(latest_use_, files_.now());
    }
    files_.touch(folder_ / name, use);  // only eviction's order depends on it
  }
  for (auto layer = layers_.begin(); !found && layer != layers_.end(); ++layer) found = look(*layer, false);
  if constexpr (std::is_same_v<Result, std::vector<std::byte>>)
    if (!found) found = find_remote(name, key);
  ++(found ? hits_ : misses_);
  return found;
}

// What comes over the network is kept in the folder; what lies in another folder of this machine is not.
std::optional<std::vector<std::byte>> kernel_cache::find_remote(const std::string& name, const content_hash& key) {
  auto entry = remote_.get(name);
  if (!entry) return std::nullopt;
  try {
    auto payload = decode_kernel_entry(*entry, key);
    if (!folder_.empty()) store_entry(name, *entry, {});
    ++remote_hits_;
    return payload;
  } catch (const std::exception& e) {
    problem(remote_.name(), "holds damaged entries, which are made again", name + ": " + e.what());
    return std::nullopt;
  }
}

std::optional<std::vector<std::byte>> kernel_cache::find(const kernel_key& key) {
  content_hash hash = key.hash();
  return find_anywhere<std::vector<std::byte>>(hash, entry_kind::kernel, [&](const auto& file, auto& payload) {
    std::vector<std::byte> entry;
    file_failure failure = read_file(files_, file, max_kernel_entry_bytes, entry);
    if (!failure) payload = decode_kernel_entry(entry, hash);
    return failure;
  });
}

std::optional<mapped_bytes> kernel_cache::find_mapped(const kernel_key& key) {
  content_hash hash = key.hash();
  return find_anywhere<mapped_bytes>(hash, entry_kind::prepared, [&](const auto& file, auto& payload) {
    mapping mapped;
    file_failure failure = map_file(files_, file, mapped);
    if (failure.code == ENODATA) throw error(error_kind::truncated, "it is empty");
    if (!failure) payload = {decode_prepared_entry(mapped.bytes, hash), mapped.owner};
    return failure;
  });
}

void kernel_cache::store(const kernel_key& key, std::span<const std::byte> bytes) {
  if (folder_.empty() && !remote_) return;
  try {
    auto entry = encode_kernel_entry(key.fields(), bytes);
    auto name = entry_file_name(key.hash(), entry_kind::kernel);
    if (!folder_.empty()) store_entry(name, entry, {});
    if (remote_.put(name, entry)) ++remote_stores_;
  } catch (const std::exception& e) {
    problem(folder_, "cannot keep an entry", e.what());
  }
}

void kernel_cache::store_raw(const kernel_key& key, std::span<const std::byte> bytes) {
  if (folder_.empty()) return;
  try {
    store_entry(entry_file_name(key.hash(), entry_kind::prepared), encode_prepared_head(key.fields(), bytes), bytes);
  } catch (const std::exception& e) {
    problem(folder_, "cannot keep an entry", e.what());
  }
}

void kernel_cache::store_entry(const std::string& name, std::span<const std::byte> head, std::span<const std::byte> payload) {
  std::uint64_t size = head.size() + payload.size();
  if (size > max_bytes_) return problem(folder_, "is too small for an entry", name + " has " + std::to_string(size) + " bytes");
  if (auto failure = write_file(files_, folder_, name, head, payload)) return problem(folder_, "cannot be written", failure.text());
  ++stores_;
  {
    std::lock_guard lock(mutex_);
    if (damaged_.erase(name)) ++repaired_;
  }
  account(size, name);
}

void kernel_cache::account(std::uint64_t added, const std::string& just_stored) {
  std::lock_guard lock(mutex_);
  if (!folder_bytes_) {
    auto entries = list_entries(files_, folder_);
    folder_bytes_ = total_bytes(entries);
    for (const entry_file& e : entries) latest_use_ = std::max(latest_use_, e.last_use);
  } else {
    *folder_bytes_ += added;
  }
  // A write gave the file the clock's time, which may lie before the last use of everything else.
  latest_use_ = next_use(latest_use_, files_.now());
  files_.touch(folder_ / just_stored, latest_use_);
  if (*folder_bytes_ <= max_bytes_) return;
  // Some room at once, so that not every store has to look through the folder.
  eviction done = evict(files_, folder_, max_bytes_ - max_bytes_ / 10, just_stored);
  folder_bytes_ = done.bytes_left;
  evicted_ += done.removed;
}

cache_counters kernel_cache::counters() const {
  return {.hits = hits_, .misses = misses_, .stores = stores_, .remote_hits = remote_hits_, .remote_stores = remote_stores_, .repaired = repaired_, .evicted = evicted_, .errors = errors_};
}

}  // namespace kiln
