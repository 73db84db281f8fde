#include "jit/prepared_cache.hpp"

#include <spdlog/spdlog.h>

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
  explicit cached_store(kernel_cache& cache) : cache_(cache) {}

  std::optional<prepared_bytes> find(const content_hash& key) noexcept override {
    try {
      if (auto found = cache_.find_mapped(key_of(key))) return prepared_bytes{found->bytes, found->owner};
    } catch (const std::exception& e) {
      spdlog::debug("prepared weights {}: {}", key.hex(), e.what());  // for example out of memory; it counts as a miss
    }
    return std::nullopt;
  }

  void store(const content_hash& key, std::span<const std::byte> bytes) noexcept override {
    try {
      cache_.store_raw(key_of(key), bytes);
    } catch (const std::exception& e) {
      spdlog::debug("prepared weights {}: {}", key.hex(), e.what());
    }
  }

 private:
  kernel_cache& cache_;
};

}  // namespace

std::unique_ptr<prepared_store> make_prepared_store(kernel_cache& cache) {
  return std::make_unique<cached_store>(cache);
}

}  // namespace kiln
