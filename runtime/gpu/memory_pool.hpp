// A pool of device memory. Uses a memory pool of the driver if it has them; otherwise caches freed blocks for the next
// request of the same size. Memory from allocate() can be used on any stream at once. free() releases memory after the
// work that is now in the device's own stream. With a driver pool the device waits for that work; without one the host
// waits. Any thread. Throws error{absent} if memory is exhausted.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "runtime/gpu/handles.hpp"

namespace kiln::gpu {

class memory_pool {
 public:
  // `own` is the device's own stream. `of` and `own` must outlive the pool.
  memory_pool(state& of, void* own);
  ~memory_pool();
  void* allocate(std::size_t bytes);
  void free(void* memory, std::size_t bytes) noexcept;
  bool uses_driver_pool() const { return pool_ != nullptr; }

 private:
  int allocate_once(void** memory, std::size_t bytes);
  int give_back_unused();
  state& state_;
  void* own_;
  std::mutex mutex_;
  raw_stream stream_;  // used only for allocations, so that waiting for one does not wait for other work
  raw_event event_;
  void* pool_ = nullptr;
  std::multimap<std::size_t, void*> blocks_;  // without a driver pool: unused blocks by size
  std::size_t block_bytes_ = 0;               // sum of the sizes in blocks_
};

}  // namespace kiln::gpu
