// The kernel cache: one file per entry (entry.hpp) in a folder of the user's, read-only folders behind it, and a remote layer behind those.
//
// It never throws into a run: what cannot be read is a miss, what cannot be written is not stored; each problem is counted,
// and warned about once for each folder. Any thread may call any function; any number of processes may share a folder, also on
// a network file system: entries appear whole, by rename, and need no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "jit/cache/entry.hpp"
#include "jit/cache/file_system.hpp"
#include "jit/cache/kernel_key.hpp"
#include "jit/cache/remote_guard.hpp"

namespace kiln {

struct cache_options {
  std::filesystem::path folder = {};              // made, mode 0700, where it is missing; empty: none
  std::vector<std::filesystem::path> read_only_layers = {};
  std::uint64_t max_bytes = std::uint64_t{4} << 30;
  file_system* files = nullptr;                   // not owned; null: the machine's own
  std::function<void(const std::string&)> warn = {};  // null: spdlog
  std::shared_ptr<remote_layer> remote = nullptr; // kernels only; asked last, and given what is stored
};

// The folder is `requested`, else KILN_CACHE_DIR, else $XDG_CACHE_HOME/kiln, else ~/.cache/kiln, else none; the layers are
// KILN_CACHE_PATH, colon-separated.
cache_options default_cache_options(const std::filesystem::path& requested = {});

struct cache_counters {
  std::uint64_t hits = 0, misses = 0, stores = 0;
  std::uint64_t remote_hits = 0, remote_stores = 0;
  std::uint64_t repaired = 0;  // damaged entries that a store replaced
  std::uint64_t evicted = 0;
  std::uint64_t errors = 0;    // reads, writes and damaged entries that were no plain miss
};

// Bytes in a mapped entry; valid as long as `owner` is held.
struct mapped_bytes {
  std::span<const std::byte> bytes;  // 64-byte aligned at least
  std::shared_ptr<const void> owner;
};

class kernel_cache {
 public:
  static std::unique_ptr<kernel_cache> open(cache_options options);
  kernel_cache(const kernel_cache&) = delete;
  kernel_cache& operator=(const kernel_cache&) = delete;

  // The bytes stored under the key: the folder first, then the layers in order, then the remote one, whose entry is kept in the folder.
  // Everything is verified.
  std::optional<std::vector<std::byte>> find(const kernel_key& key);
  void store(const kernel_key& key, std::span<const std::byte> bytes);

  // The same for what is mapped rather than read: prepared weights. Kept beside a kernel under the same key, not instead.
  std::optional<mapped_bytes> find_mapped(const kernel_key& key);
  void store_raw(const kernel_key& key, std::span<const std::byte> bytes);

  bool writable() const { return !folder_.empty(); }
  const std::filesystem::path& folder() const { return folder_; }  // empty where it was refused
  cache_counters counters() const;

 private:
  explicit kernel_cache(cache_options options);
  struct lookup;
  template <class Result, class Load>
  std::optional<Result> find_anywhere(const content_hash& key, entry_kind kind, Load load);
  std::optional<std::vector<std::byte>> find_remote(const std::string& name, const content_hash& key);
  void store_entry(const std::string& name, std::span<const std::byte> head, std::span<const std::byte> payload);
  void account(std::uint64_t added, const std::string& just_stored);
  void problem(const std::filesystem::path& folder, std::string_view what, const std::string& detail);

  file_system& files_;
  std::function<void(const std::string&)> warn_;
  std::filesystem::path folder_;
  std::vector<std::filesystem::path> layers_;
  remote_guard remote_;
  std::uint64_t max_bytes_;

  std::atomic<std::uint64_t> hits_{0}, misses_{0}, stores_{0}, repaired_{0}, evicted_{0}, errors_{0}, remote_hits_{0}, remote_stores_{0};
  std::mutex mutex_;  // guards what follows
  std::set<std::string> reported_, damaged_;
  std::optional<std::uint64_t> folder_bytes_;  // an estimate: other processes write too
  std::int64_t latest_use_ = 0;                // nanoseconds; never goes back, whatever the clock does
};

}  // namespace kiln
