#include "jit/prepared_cache.hpp"

#include <spdlog/spdlog.h>

#include <map>
#include <mutex>

namespace kiln {
namespace {

// The runtime's key covers the constants and the code that packs them. The result depends on nothing else.
kernel_key key_of(const content_hash& key) {
  kernel_key result;
  result.constants = key.hex();
  return result;
}

class cached_store final : public prepared_store {
 public:
  cached_store(kernel_cache& cache, bool later) : cache_(cache), later_(later) {}

  std::optional<prepared_bytes> find(const content_hash& key) noexcept override {
    try {
      std::lock_guard lock(mutex_);
      mapping& known = mapped_[key];
      if (auto owner = known.owner.lock()) return prepared_bytes{known.bytes, std::move(owner)};
      if (auto found = cache_.find_mapped(key_of(key))) {
        known = {found->bytes, found->owner};
        return prepared_bytes{found->bytes, found->owner};
      }
      mapped_.erase(key);
    } catch (const std::exception& e) {
      spdlog::debug("prepared weights {}: {}", key.hex(), e.what());  // for example out of memory; it counts as a miss
    }
    return std::nullopt;
  }

  void store(const content_hash& key, const prepared_bytes& prepared) noexcept override {
    try {
      if (later_) cache_.store_raw_later(key_of(key), {prepared.bytes, prepared.owner});
      else cache_.store_raw(key_of(key), prepared.bytes);
    } catch (const std::exception& e) {
      spdlog::debug("prepared weights {}: {}", key.hex(), e.what());
    }
  }

 private:
  // The mapping of a loaded program. Shared within the process, because the cache hashes an entry each time it is
  // mapped.
  struct mapping {
    std::span<const std::byte> bytes;
    std::weak_ptr<const void> owner;
  };
  kernel_cache& cache_;
  const bool later_;
  std::mutex mutex_;
  std::map<content_hash, mapping> mapped_;
};

}  // namespace

std::unique_ptr<prepared_store> make_prepared_store(kernel_cache& cache, bool later) {
  return std::make_unique<cached_store>(cache, later);
}

}  // namespace kiln
