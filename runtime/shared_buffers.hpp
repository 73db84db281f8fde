// Device memory that programs share: weights that were uploaded, buffers that were prepared, by the hash of their
// contents. Held weakly: memory goes when the last program that uses it does. Any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "ir/hash.hpp"

namespace kiln {

class device_memory;

class shared_buffers {
 public:
  // Null when nobody holds such memory.
  std::shared_ptr<const device_memory> find(const content_hash& key);
  // The memory to use from now on: `memory`, or what another thread added under this key before.
  std::shared_ptr<const device_memory> add(const content_hash& key, std::shared_ptr<const device_memory> memory);

 private:
  std::mutex mutex_;
  std::map<content_hash, std::weak_ptr<const device_memory>> entries_;
};

}  // namespace kiln
