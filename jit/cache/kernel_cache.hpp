// The kernel cache: one file per entry (entry.hpp) in a folder of the user's; behind it read-only folders, the entries
// inside a `.kiln` file, and a remote layer, asked in this order.
//
// It never throws into a run: what cannot be read is a miss, what cannot be written is not stored; each problem is
// counted, and warned about once for each layer. Any thread may call any function; any number of processes may share a
// folder, also on a network file system: entries appear whole, by rename, and need no lock.
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

#include "ir/trust/native_consent.hpp"
#include "jit/cache/embedded_entries.hpp"
#include "jit/cache/entry.hpp"
#include "jit/cache/file_system.hpp"
#include "jit/cache/kernel_key.hpp"
#include "jit/cache/remote_guard.hpp"
#include "jit/cache/signature.hpp"
#include "jit/cache/work_claim.hpp"

namespace kiln {

struct cache_options {
  std::filesystem::path folder = {};  // made, mode 0700, where it is missing; empty: none
  std::vector<std::filesystem::path> read_only_layers = {};
  std::uint64_t max_bytes = std::uint64_t{4} << 30;
  file_system* files = nullptr;                                // not owned; null: the machine's own
  std::function<void(const std::string&)> warn = {};           // null: spdlog
  std::shared_ptr<const embedded_entries> embedded = nullptr;  // those of the file that is run
  std::shared_ptr<remote_layer> remote = nullptr;              // kernels only; asked last, and given what is stored
  std::optional<signing_key> sign_with = {};  // signs what is stored; none: the own key of consent.user
  // Embedded and remote entries must have a signature that it trusts. With `only`, those of read-only layers too;
  // without it these must be this user's or root's, and no other user may be able to change them
  // (ir/trust/safe_path.hpp).
  native_consent consent = {};
};

// The folder is `requested`, else KILN_CACHE_DIR, else $XDG_CACHE_HOME/kiln, else ~/.cache/kiln, else none; the layers
// are KILN_CACHE_PATH, colon-separated.
cache_options default_cache_options(const std::filesystem::path& requested = {});

struct cache_counters {
  std::uint64_t hits = 0, misses = 0, stores = 0;
  std::uint64_t folder_hits = 0, layer_hits = 0, embedded_hits = 0, remote_hits = 0;  // add up to `hits`
  std::uint64_t remote_stores = 0;
  std::uint64_t repaired = 0;  // damaged entries that a store replaced
  std::uint64_t evicted = 0;
  std::uint64_t untrusted =
      0;  // entries without a trusted signature where one is required, and those that others can change
  std::uint64_t errors = 0;  // reads, writes and damaged entries that were no plain miss
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

  // The bytes stored under the key, from the first layer that has them. Everything is verified. What the remote layer
  // has is kept in the folder; what lies in another layer is not.
  std::optional<std::vector<std::byte>> find(const kernel_key& key);
  // The whole entry instead, byte for byte as it lies there: to hand it on.
  std::optional<std::vector<std::byte>> find_entry(const kernel_key& key);
  void store(const kernel_key& key, std::span<const std::byte> bytes);
  // Keeps a whole entry of somebody's in the folder, with its signature, where it is sound and may be used; says
  // whether it is there.
  bool adopt(const kernel_key& key, std::span<const std::byte> entry, const std::filesystem::path& from);

  // The same for what is mapped rather than read: prepared weights. Kept beside a kernel under the same key, not
  // instead. Folders only.
  std::optional<mapped_bytes> find_mapped(const kernel_key& key);
  void store_raw(const kernel_key& key, std::span<const std::byte> bytes);

  // After a miss, before making what was missed: keeps other processes from doing the same, best effort
  // (work_claim.hpp). Whoever has it looks again with `find_made`, since another may just have finished.
  work_claim claim(const kernel_key& key);
  // In the folder only; a hit takes back the miss that was counted before.
  std::optional<std::vector<std::byte>> find_made(const kernel_key& key);

  bool writable() const { return !folder_.empty(); }
  const std::filesystem::path& folder() const { return folder_; }               // empty where it was refused
  const std::vector<std::filesystem::path>& layers() const { return layers_; }  // without those that were refused
  cache_counters counters() const;

 private:
  struct found_kernel {
    std::vector<std::byte> entry, payload;
  };
  struct found_mapping {
    std::span<const std::byte> entry, payload;
    std::shared_ptr<const void> owner;
  };
  // What vouches for an entry: that it lies in the folder, that it lies in a layer which only this user and root can
  // change, or its signature.
  enum class entry_place { folder, layer, signed_layer };
  explicit kernel_cache(cache_options options);
  template <class Found, class Load>
  std::optional<Found> look(const std::filesystem::path& folder, const std::string& name, entry_place place, Load load);
  template <class Found, class Load>
  std::optional<Found> find_in_folders(const std::string& name, Load load);
  std::optional<found_kernel> find_kernel(const kernel_key& key);
  std::optional<found_kernel> find_embedded(const std::string& name, const content_hash& key);
  std::optional<found_kernel> find_remote(const std::string& name, const content_hash& key);
  bool consented(const std::filesystem::path& layer, const std::string& name, std::span<const std::byte> entry);
  const signing_key* signer();
  void note_use(const std::string& name);
  bool store_entry(const std::string& name, std::span<const std::byte> head, std::span<const std::byte> payload);
  void account(std::uint64_t added, const std::string& just_stored);
  void problem(const std::filesystem::path& layer, std::string_view what, const std::string& detail);

  file_system& files_;
  std::function<void(const std::string&)> warn_;
  std::filesystem::path folder_;
  std::vector<std::filesystem::path> layers_;
  std::shared_ptr<const embedded_entries> embedded_;
  remote_guard remote_;
  std::optional<signing_key> sign_with_;
  native_consent consent_;
  std::uint64_t max_bytes_;

  std::atomic<std::uint64_t> misses_{0}, stores_{0}, repaired_{0}, evicted_{0}, untrusted_{0}, errors_{0};
  std::atomic<std::uint64_t> folder_hits_{0}, layer_hits_{0}, embedded_hits_{0}, remote_hits_{0}, remote_stores_{0};
  std::mutex mutex_;  // guards what follows
  std::set<std::string> reported_, damaged_;
  std::optional<std::uint64_t> folder_bytes_;  // an estimate: other processes write too
  std::uint64_t added_ = 0;                    // by this process since it was counted
  std::int64_t latest_use_ = 0;                // nanoseconds; never goes back, whatever the clock does
};

}  // namespace kiln
