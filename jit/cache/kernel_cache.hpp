// The kernel cache. It keeps one file per entry (entry.hpp) in a folder of the user. A lookup asks this folder, then
// the read-only folders, then the entries inside a `.kiln` file, then a remote layer.
//
// It never throws into a run: an entry that cannot be read is a miss, and one that cannot be written is not stored.
// Each problem is counted, and logged as a warning once for each layer. Any thread may call any function. Any number of
// processes may share a folder, also on a network file system, because entries are replaced atomically by rename and
// need no lock.
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
#include "jit/cache/write_behind.hpp"

namespace kiln {

struct cache_options {
  std::filesystem::path folder = {};  // created with mode 0700 if missing; empty: no folder
  std::vector<std::filesystem::path> read_only_layers = {};
  std::uint64_t max_bytes = std::uint64_t{4} << 30;
  file_system* files = nullptr;                                // not owned; null: posix_file_system()
  std::function<void(const std::string&)> warn = {};           // null: spdlog
  std::shared_ptr<const embedded_entries> embedded = nullptr;  // entries of the file that is run
  std::shared_ptr<remote_layer> remote = nullptr;  // for kernels only; asked last, and receives what is stored
  std::optional<signing_key> sign_with = {};       // signs stored kernels; none: the own key of consent.user
  // Embedded and remote entries must have a signature that `consent` trusts. With consent.only this also holds for
  // read-only layers. Otherwise these must belong to this user or root, and no other user may be able to change them
  // (ir/trust/safe_path.hpp).
  native_consent consent = {};
};

// The folder is `requested`, else $KILN_CACHE_DIR, else $XDG_CACHE_HOME/kiln, else ~/.cache/kiln, else none. The layers
// are the colon-separated folders of $KILN_CACHE_PATH.
cache_options default_cache_options(const std::filesystem::path& requested = {});

struct cache_counters {
  std::uint64_t hits = 0, misses = 0, stores = 0;
  std::uint64_t folder_hits = 0, layer_hits = 0, embedded_hits = 0, remote_hits = 0;  // their sum is `hits`
  std::uint64_t remote_stores = 0;
  std::uint64_t repaired = 0;  // damaged entries that a store replaced
  std::uint64_t evicted = 0;
  // Entries that lack a required trusted signature, and entries that other users can change.
  std::uint64_t untrusted = 0;
  std::uint64_t errors = 0;  // failed reads and writes, damaged and untrusted entries
};

// Bytes of a mapped entry. They are valid as long as `owner` exists.
struct mapped_bytes {
  std::span<const std::byte> bytes;  // aligned to at least 64 bytes
  std::shared_ptr<const void> owner;
};

class kernel_cache {
 public:
  static std::unique_ptr<kernel_cache> open(cache_options options);
  kernel_cache(const kernel_cache&) = delete;
  kernel_cache& operator=(const kernel_cache&) = delete;

  // The bytes stored under the key, from the first layer that has them. Everything is verified. A hit in the remote
  // layer is copied to the folder; hits in other layers are not.
  std::optional<std::vector<std::byte>> find(const kernel_key& key);
  // Like find(), but returns the whole entry byte for byte, so that it can be passed on.
  std::optional<std::vector<std::byte>> find_entry(const kernel_key& key);
  void store(const kernel_key& key, std::span<const std::byte> bytes);
  // Like store(), on a thread of the cache: returns at once. The claim is released when the entry is stored. The
  // destructor and counters() wait until everything is stored.
  void store_later(kernel_key key, std::shared_ptr<const std::vector<std::byte>> bytes, work_claim claim = {});
  // Stores a whole entry from elsewhere in the folder, with its signature, if it is valid and trusted. Returns whether
  // it was stored. `from` names its origin in warnings.
  bool adopt(const kernel_key& key, std::span<const std::byte> entry, const std::filesystem::path& from);

  // Like find() and store(), for prepared weights, which are mapped instead of read. A kernel under the same key is a
  // separate entry. Only folders are used.
  std::optional<mapped_bytes> find_mapped(const kernel_key& key);
  void store_raw(const kernel_key& key, std::span<const std::byte> bytes);
  void store_raw_later(kernel_key key, mapped_bytes bytes);

  // Called after a miss, before compiling the kernel: keeps other processes from compiling it too, with best effort
  // (work_claim.hpp). The owner of the claim calls find_made() first, because another process may just have stored the
  // kernel.
  work_claim claim(const kernel_key& key);
  // Looks in the folder only. A hit subtracts the miss that was counted before.
  std::optional<std::vector<std::byte>> find_made(const kernel_key& key);

  bool writable() const { return !folder_.empty(); }
  const std::filesystem::path& folder() const { return folder_; }               // empty if it was refused
  const std::vector<std::filesystem::path>& layers() const { return layers_; }  // without refused ones
  cache_counters counters() const;  // waits for store_later() and store_raw_later()

 private:
  struct found_kernel {
    std::vector<std::byte> entry, payload;
  };
  struct found_mapping {
    std::span<const std::byte> entry, payload;
    std::shared_ptr<const void> owner;
  };
  // Why an entry is trusted: it is in the user's folder, it is in a layer that only this user and root can change, or
  // it is in a layer whose entries need a trusted signature.
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
  std::mutex mutex_;  // guards the members below
  std::set<std::string> reported_, damaged_;
  std::optional<std::uint64_t> folder_bytes_;  // an estimate: other processes write too
  std::uint64_t added_ = 0;                    // bytes that this process has stored since the folder was last counted
  std::int64_t latest_use_ = 0;                // nanoseconds since 1970; never decreases, even if the clock goes back
  mutable write_behind writes_;                // the last member: its tasks use the others
};

}  // namespace kiln
