#include "runtime/gpu/memory_pool.hpp"

#include <cstdint>

namespace kiln::gpu {
namespace {

// How much unused memory an idle process keeps, because other processes may need the device's memory.
constexpr std::size_t kept_bytes = std::size_t{64} << 20;

// Blocks are reused for requests of the same rounded size. 512 bytes is the drivers' own alignment and 2 MiB their page
// size.
std::size_t block_size(std::size_t bytes) {
  std::size_t grain = bytes < (std::size_t{1} << 20) ? 512 : std::size_t{2} << 20;
  return bytes > SIZE_MAX - grain ? bytes : (bytes + grain - 1) / grain * grain;
}

}  // namespace

memory_pool::memory_pool(state& of, void* own) : state_(of), own_(own), stream_(of), event_(of, event_without_timing) {
  const driver_functions& f = of.functions();
  int supported = 0;
  bool all = f.pool_create && f.pool_destroy && f.pool_set_attribute && f.pool_trim && f.pool_allocate && f.pool_free;
  // Older drivers do not know this attribute, and some virtual GPUs cannot create a pool. Then the cache of blocks is
  // used.
  if (!all || f.device_attribute(&supported, of.driver().attributes().memory_pools, of.handle()) != status_ok ||
      !supported)
    return;
  pool_properties properties;
  properties.location_id = of.ordinal();
  void* pool = nullptr;
  if (int status = f.pool_create(&pool, &properties)) {
    of.note(status);
    return;
  }
  pool_ = pool;
  std::uint64_t keep = kept_bytes;
  of.note(f.pool_set_attribute(pool_, pool_release_threshold, &keep));  // affects only speed
}

memory_pool::~memory_pool() {
  if (state_.hung()) return;
  current_device now(state_);
  state_.note(state_.wait_for_stream(stream_.get()));
  give_back_unused();
  if (pool_) state_.note(state_.functions().pool_destroy(pool_));
}

int memory_pool::give_back_unused() {
  const driver_functions& f = state_.functions();
  if (pool_) {
    int status = state_.wait_for_stream(stream_.get());  // waits for frees in progress
    return status ? status : f.pool_trim(pool_, 0);
  }
  int first = status_ok;
  for (auto [bytes, memory] : blocks_)
    if (int status = f.memory_free(memory); status && !first) first = status;
  blocks_.clear();
  block_bytes_ = 0;
  return first;
}

int memory_pool::allocate_once(void** memory, std::size_t bytes) {
  const driver_functions& f = state_.functions();
  if (!pool_) return f.memory_allocate(memory, block_size(bytes));
  int status = f.pool_allocate(memory, bytes, pool_, stream_.get());
  if (status) return status;
  status = state_.wait_for_stream(stream_.get());
  if (status) state_.note(f.pool_free(*memory, stream_.get()));
  return status;
}

void* memory_pool::allocate(std::size_t bytes) {
  working_device now(state_);
  std::lock_guard lock(mutex_);
  if (auto kept = blocks_.find(block_size(bytes)); kept != blocks_.end()) {
    void* memory = kept->second;
    block_bytes_ -= kept->first;
    blocks_.erase(kept);
    return memory;
  }
  void* memory = nullptr;
  int status = allocate_once(&memory, bytes);
  if (status == status_out_of_memory) {
    give_back_unused();
    status = allocate_once(&memory, bytes);
  }
  state_.require(status, "allocating " + std::to_string(bytes) + " bytes");
  return memory;
}

void memory_pool::free(void* memory, std::size_t bytes) noexcept {
  if (state_.hung()) return;
  const driver_functions& f = state_.functions();
  current_device now(state_);
  std::lock_guard lock(mutex_);
  if (pool_) {
    // If recording fails, the device is lost or about to be. Free the memory anyway.
    state_.note(f.event_record(event_.get(), own_));
    state_.note(f.stream_wait_event(stream_.get(), event_.get(), 0));
    state_.note(f.pool_free(memory, stream_.get()));
    return;
  }
  std::size_t size = block_size(bytes);
  bool idle = f.stream_synchronize(own_) == status_ok;
  if (idle && block_bytes_ + size <= kept_bytes) {
    try {
      blocks_.emplace(size, memory);
      block_bytes_ += size;
      return;
    } catch (const std::bad_alloc&) {}
  }
  state_.note(f.memory_free(memory));
}

}  // namespace kiln::gpu
