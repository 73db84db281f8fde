// Device memory, pooled: out of a memory pool of the driver's where it has them, otherwise out of blocks kept for the
// next request of their size. Memory is ready for any stream when allocate() returns; free() waits, on the device, for
// the device's own stream. Any thread. Throws error{out_of_memory}.
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
