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

// Upper bound on the size of an entry. A corrupted size field must not cause a huge allocation.
constexpr std::size_t max_kernel_entry_bytes = std::size_t{1} << 31;
constexpr std::size_t most_head_bytes = entry_header_bytes + max_field_bytes;

// How an entry is loaded: from a trusted folder, or from a layer where its signature must be trusted.
struct loading {
  file_owner owner;
  signature_check check;
};
constexpr loading from_this_user{file_owner::this_user, signature_check::shape_only};
constexpr loading from_anybody{file_owner::anybody, signature_check::compute};

// Returns a function that loads a kernel's entry from a file and verifies it.
auto read_kernel(file_system& files, const content_hash& key) {
  return [&files, key](const std::filesystem::path& file, const loading& how, auto& into) {
    file_failure failure = read_file(files, file, most_head_bytes, into.entry, how.owner);
    if (!failure && into.entry.size() == most_head_bytes) {
      // A large file: its head says how much there is to read, so that a damaged one is not read to its end.
      const std::uint64_t wanted = decode_entry_head(into.entry).file_bytes() + signature_bytes;
      failure =
          read_file(files, file, std::min<std::uint64_t>(wanted + 1, max_kernel_entry_bytes), into.entry, how.owner);
    }
    if (!failure) into.payload = decode_kernel_entry(into.entry, key, how.check);
    return failure;
  };
}

}  // namespace

std::unique_ptr<kernel_cache> kernel_cache::open(cache_options options) {
  return std::unique_ptr<kernel_cache>(new kernel_cache(std::move(options)));
}

kernel_cache::kernel_cache(cache_options options)
    : files_(options.files ? *options.files : posix_file_system()),
      warn_(std::move(options.warn)),
      embedded_(std::move(options.embedded)),
      remote_(std::move(options.remote),
              [this](const std::string& why) { problem(remote_.name(), "cannot be reached", why); }),
      sign_with_(std::move(options.sign_with)),
      consent_(std::move(options.consent)),
      max_bytes_(options.max_bytes) {
  std::error_code failed;
  if (!options.folder.empty()) {
    auto folder = std::filesystem::absolute(options.folder, failed).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();  // "cache/" is "cache"
    std::string why = failed ? failed.message() : prepare_cache_folder(files_, folder);
    if (why.empty()) folder_ = std::move(folder);
    else problem(options.folder, why, "running without it");
  }
  for (const auto& layer : options.read_only_layers) {
    auto absolute = std::filesystem::absolute(layer, failed).lexically_normal();
    std::string why = failed ? failed.message() : refuse_layer(files_, absolute, consent_.only.has_value());
    if (why.empty()) layers_.push_back(layer);
    else problem(layer, why, "running without this layer");
  }
  if (!folder_.empty()) sweep_temporaries(files_, folder_);
}

void kernel_cache::problem(const std::filesystem::path& layer, std::string_view what, const std::string& detail) {
  ++errors_;
  {
    std::lock_guard lock(mutex_);
    if (!reported_.insert(layer.string() + '\n' + std::string(what)).second) return;
  }
  std::string message =
      "kernel cache " + layer.string() + " " + std::string(what) + (detail.empty() ? "" : ": " + detail);
  if (warn_) warn_(message);
  else spdlog::warn(message);
}

// An intact entry without a trusted signature is a miss, but it is not reported as corrupt. Throws what signer_of
// throws.
bool kernel_cache::consented(const std::filesystem::path& layer, const std::string& name,
                             std::span<const std::byte> entry) {
  auto signer = signer_of(entry, decode_entry_head(entry).file_bytes());
  if (consent_.trusts(signer)) return true;
  ++untrusted_;
  problem(layer, "holds entries without a trusted signature, which are not used",
          name + " " + consent_.complaint(signer));
  return false;
}

const signing_key* kernel_cache::signer() {
  if (sign_with_) return &*sign_with_;
  return consent_.user ? consent_.user->own() : nullptr;
}

template <class Found, class Load>
std::optional<Found> kernel_cache::look(const std::filesystem::path& folder, const std::string& name, entry_place place,
                                        Load load) {
  try {
    Found found;
    file_failure failure =
        load(folder / name, place == entry_place::signed_layer ? from_anybody : from_this_user, found);
    if (!failure && place == entry_place::signed_layer && !consented(folder, name, found.entry)) return std::nullopt;
    if (!failure) return found;
    if (failure.foreign) {
      ++untrusted_;
      problem(folder, "holds entries that others can change, which are not used", name);
    } else if (failure.code != ENOENT) {
      problem(folder, "cannot be read", failure.text());
    }
  } catch (const error& e) {
    problem(folder, "holds damaged entries, which count as misses", name + ": " + e.what());
    if (place == entry_place::folder) {
      files_.remove(folder / name);  // may fail; the next store replaces the entry anyway
      std::lock_guard lock(mutex_);
      damaged_.insert(name);
    }
  } catch (const std::bad_alloc&) {
    problem(folder, "cannot be read", "out of memory");
  }
  return std::nullopt;
}

template <class Found, class Load>
std::optional<Found> kernel_cache::find_in_folders(const std::string& name, Load load) {
  std::optional<Found> found;
  if (!folder_.empty() && (found = look<Found>(folder_, name, entry_place::folder, load))) {
    note_use(name);
    ++folder_hits_;
  }
  const entry_place place = consent_.only ? entry_place::signed_layer : entry_place::layer;
  for (auto layer = layers_.begin(); !found && layer != layers_.end(); ++layer)
    if ((found = look<Found>(*layer, name, place, load))) ++layer_hits_;
  return found;
}

void kernel_cache::note_use(const std::string& name) {
  std::int64_t use;
  {
    std::lock_guard lock(mutex_);
    use = latest_use_ = next_use(latest_use_, files_.now());
  }
  files_.touch(folder_ / name, use);  // failure is harmless: only the order of eviction depends on it
}

std::optional<kernel_cache::found_kernel> kernel_cache::find_embedded(const std::string& name,
                                                                      const content_hash& key) {
  auto entry = embedded_ ? embedded_->find(name) : std::nullopt;
  if (!entry) return std::nullopt;
  try {
    if (!consented(embedded_->file(), name, *entry)) return std::nullopt;
    found_kernel found{{entry->begin(), entry->end()}, decode_kernel_entry(*entry, key, signature_check::shape_only)};
    ++embedded_hits_;
    return found;
  } catch (const std::exception& e) {
    problem(embedded_->file(), "holds damaged entries, which count as misses", name + ": " + e.what());
    return std::nullopt;
  }
}

std::optional<kernel_cache::found_kernel> kernel_cache::find_remote(const std::string& name, const content_hash& key) {
  std::optional<found_kernel> found;
  remote_.get(name, [&](std::vector<std::byte> entry) {
    try {
      if (!consented(remote_.name(), name, entry)) return false;
      auto payload = decode_kernel_entry(entry, key, signature_check::shape_only);
      ++remote_hits_;
      if (!folder_.empty()) store_entry(name, entry, {});
      found = found_kernel{std::move(entry), std::move(payload)};
      return true;
    } catch (const std::exception& e) {
      problem(remote_.name(), "holds damaged entries, which count as misses", name + ": " + e.what());
      return false;
    }
  });
  return found;
}

std::optional<kernel_cache::found_kernel> kernel_cache::find_kernel(const kernel_key& key) {
  content_hash hash = key.hash();
  std::string name = entry_file_name(hash, entry_kind::kernel);
  auto found = find_in_folders<found_kernel>(name, read_kernel(files_, hash));
  if (!found) found = find_embedded(name, hash);
  if (!found) found = find_remote(name, hash);
  if (!found) ++misses_;
  return found;
}

std::optional<std::vector<std::byte>> kernel_cache::find(const kernel_key& key) {
  auto found = find_kernel(key);
  return found ? std::optional(std::move(found->payload)) : std::nullopt;
}

std::optional<std::vector<std::byte>> kernel_cache::find_entry(const kernel_key& key) {
  auto found = find_kernel(key);
  return found ? std::optional(std::move(found->entry)) : std::nullopt;
}

std::optional<std::vector<std::byte>> kernel_cache::find_made(const kernel_key& key) {
  if (folder_.empty()) return std::nullopt;
  content_hash hash = key.hash();
  std::string name = entry_file_name(hash, entry_kind::kernel);
  auto found = look<found_kernel>(folder_, name, entry_place::folder, read_kernel(files_, hash));
  if (!found) return std::nullopt;
  note_use(name);
  ++folder_hits_;
  --misses_;
  return std::move(found->payload);
}

std::optional<mapped_bytes> kernel_cache::find_mapped(const kernel_key& key) {
  content_hash hash = key.hash();
  auto load = [&](const auto& file, const loading& how, found_mapping& into) {
    mapping mapped;
    // Copy files that others can change. In a mapping, changes made after the verification would be visible.
    file_failure failure = how.owner == file_owner::this_user ? map_file(files_, file, mapped, how.owner)
                                                              : copy_file(files_, file, mapped);
    if (failure.code == ENODATA) throw error(error_kind::truncated, "it is empty");
    if (!failure) into = {mapped.bytes, decode_prepared_entry(mapped.bytes, hash, how.check), mapped.owner};
    return failure;
  };
  auto found = find_in_folders<found_mapping>(entry_file_name(hash, entry_kind::prepared), load);
  if (!found) ++misses_;
  return found ? std::optional(mapped_bytes{found->payload, std::move(found->owner)}) : std::nullopt;
}

work_claim kernel_cache::claim(const kernel_key& key) { return work_claim::take(files_, folder_, key.hash().hex()); }

void kernel_cache::store(const kernel_key& key, std::span<const std::byte> bytes) {
  if (folder_.empty() && !remote_) return;
  try {
    auto entry = encode_kernel_entry(key.fields(), bytes);
    if (const signing_key* key_of_ours = signer()) entry = signed_entry(entry, *key_of_ours);
    std::string name = entry_file_name(key.hash(), entry_kind::kernel);
    if (!folder_.empty() && store_entry(name, entry, {})) ++stores_;
    if (remote_.put(name, entry)) ++remote_stores_;
  } catch (const std::exception& e) {
    problem(folder_.empty() ? std::filesystem::path(remote_.name()) : folder_, "cannot store an entry", e.what());
  }
}

void kernel_cache::store_later(kernel_key key, std::shared_ptr<const std::vector<std::byte>> bytes, work_claim claim) {
  auto held = std::make_shared<work_claim>(std::move(claim));
  writes_.add([this, key = std::move(key), bytes = std::move(bytes), held] { store(key, *bytes); });
}

bool kernel_cache::adopt(const kernel_key& key, std::span<const std::byte> entry, const std::filesystem::path& from) {
  if (folder_.empty()) return false;
  std::string name = entry_file_name(key.hash(), entry_kind::kernel);
  try {
    if (!consented(from, name, entry)) return false;
    decode_kernel_entry(entry, key.hash(), signature_check::shape_only);
  } catch (const std::exception&) {
    return false;  // a damaged entry is compiled again
  }
  return store_entry(name, entry, {});
}

void kernel_cache::store_raw(const kernel_key& key, std::span<const std::byte> bytes) {
  if (folder_.empty()) return;
  try {
    // Packed weights are not signed here. They leave this machine only through an export, which signs them.
    if (store_entry(entry_file_name(key.hash(), entry_kind::prepared), encode_prepared_head(key.fields(), bytes),
                    bytes))
      ++stores_;
  } catch (const std::exception& e) {
    problem(folder_, "cannot store an entry", e.what());
  }
}

void kernel_cache::store_raw_later(kernel_key key, mapped_bytes bytes) {
  writes_.add([this, key = std::move(key), bytes = std::move(bytes)] { store_raw(key, bytes.bytes); });
}

bool kernel_cache::store_entry(const std::string& name, std::span<const std::byte> head,
                               std::span<const std::byte> payload) {
  std::uint64_t size = head.size() + payload.size();
  if (size > max_bytes_) {
    problem(folder_, "is too small for an entry", name + " has " + std::to_string(size) + " bytes");
    return false;
  }
  // Only packed weights follow their head. They are hundreds of MiB, for whose way to the disk a process would wait at
  // its end, and find_mapped() verifies them.
  const durability lasting = payload.empty() ? durability::synchronized : durability::unsynchronized;
  if (auto failure = write_file(files_, folder_, name, head, payload, lasting)) {
    problem(folder_, "cannot be written", failure.text());
    return false;
  }
  {
    std::lock_guard lock(mutex_);
    if (damaged_.erase(name)) ++repaired_;
  }
  account(size, name);
  return true;
}

void kernel_cache::account(std::uint64_t added, const std::string& just_stored) {
  std::lock_guard lock(mutex_);
  // Other processes write too. Count the folder again whenever this process has added a sixteenth of the bound, so that
  // many processes together stay near the bound.
  added_ += added;
  if (!folder_bytes_ || added_ > max_bytes_ / 16) {
    auto entries = list_entries(files_, folder_);
    folder_bytes_ = total_bytes(entries);
    added_ = 0;
    for (const entry_file& e : entries) latest_use_ = std::max(latest_use_, e.last_use);
  } else {
    *folder_bytes_ += added;
  }
  // The new file's time is that of the clock, which may be earlier than the last use of all other entries.
  latest_use_ = next_use(latest_use_, files_.now());
  files_.touch(folder_ / just_stored, latest_use_);
  if (*folder_bytes_ <= max_bytes_) return;
  // Evict to 90 % of the bound, so that not every store has to list the folder.
  eviction done = evict(files_, folder_, max_bytes_ - max_bytes_ / 10, just_stored);
  folder_bytes_ = done.bytes_left;
  evicted_ += done.removed;
}

cache_counters kernel_cache::counters() const {
  writes_.finish();
  return {.hits = folder_hits_ + layer_hits_ + embedded_hits_ + remote_hits_,
          .misses = misses_,
          .stores = stores_,
          .folder_hits = folder_hits_,
          .layer_hits = layer_hits_,
          .embedded_hits = embedded_hits_,
          .remote_hits = remote_hits_,
          .remote_stores = remote_stores_,
          .repaired = repaired_,
          .evicted = evicted_,
          .untrusted = untrusted_,
          .errors = errors_};
}

}  // namespace kiln
