// Device memory that programs share, keyed by the hash of its contents: uploaded weights and prepared buffers. Held by
// weak references, so memory is freed with the last program that uses it. Any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "ir/hash.hpp"

namespace kiln {

class device_memory;

class shared_buffers {
 public:
  // Returns null if no such memory is alive.
  std::shared_ptr<const device_memory> find(const content_hash& key);
  // Adds `memory` and returns it, or returns the memory that another thread has already added under this key.
  std::shared_ptr<const device_memory> add(const content_hash& key, std::shared_ptr<const device_memory> memory);

 private:
  std::mutex mutex_;
  std::map<content_hash, std::weak_ptr<const device_memory>> entries_;
};

}  // namespace kiln
