#include "runtime/arena_pool.hpp"

#include <algorithm>
#include <utility>

namespace kiln {

// A block that is too small is freed and replaced by one with room to grow, so that runs whose sizes grow step by step
// allocate rarely.
device_memory arena_pool::take(std::size_t bytes) {
  if (bytes == 0) return {};
  device_memory small;
  {
    std::lock_guard lock(mutex_);
    const auto found = std::ranges::lower_bound(free_, bytes, {}, &device_memory::size);
    if (found != free_.end()) {
      device_memory block = std::move(*found);
      free_.erase(found);
      return block;
    }
    if (!free_.empty()) {
      small = std::move(free_.back());
      free_.pop_back();
    }
  }
  const std::size_t room = std::max(bytes, std::min(small.size() + small.size() / 4, 2 * bytes));
  small = {};
  return device_.allocate(room);
}

void arena_pool::give_back(device_memory block) {
  if (!block.size()) return;
  std::lock_guard lock(mutex_);
  const auto at = std::ranges::upper_bound(free_, block.size(), {}, &device_memory::size);
  free_.insert(at, std::move(block));
}

}  // namespace kiln
