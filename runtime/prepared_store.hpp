// Stores results of `prepare` launches on constants (packed weights) between processes. The key is a content hash of
// the constants and of the code that packs them (runtime/prepare.cpp), so equal keys mean equal bytes. jit/ implements
// it with the kernel cache.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "ir/hash.hpp"

namespace kiln {

struct prepared_bytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  // keeps `bytes` alive (a mapped file or memory)
};

// Called while a program is loaded, on the loading thread. Neither function throws: a failing store behaves like a
// miss.
class prepared_store {
 public:
  virtual ~prepared_store() = default;
  virtual std::optional<prepared_bytes> find(const content_hash& key) noexcept = 0;
  // Stores a copy of the bytes, possibly after the call, for which it may keep the owner. May do nothing.
  virtual void store(const content_hash& key, const prepared_bytes& prepared) noexcept = 0;
};

}  // namespace kiln
