#include "runtime/spare_contexts.hpp"

#include <algorithm>
#include <utility>

namespace kiln {

spare_context spare_contexts::take(const std::shared_ptr<const kernel_library>& library) {
  std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(free_, library, &spare_context::library);
  if (found == free_.end()) return {};
  spare_context result = std::move(*found);
  free_.erase(found);
  return result;
}

void spare_contexts::give_back(spare_context ended) noexcept {
  constexpr std::size_t most = 2;
  spare_context dropped;  // freed after the lock
  std::lock_guard lock(mutex_);
  try {
    if (free_.size() == most) {
      dropped = std::move(free_.front());
      free_.erase(free_.begin());
    }
    free_.push_back(std::move(ended));
  } catch (const std::bad_alloc&) {
    // It is freed instead.
  }
}

bool fit(device_memory& memory, std::size_t bytes, device& target) {
  constexpr std::size_t small = std::size_t{2} << 20;
  if (memory.size() >= bytes && memory.size() <= std::max(bytes + bytes / 4, small)) return true;
  memory = {};
  memory = target.allocate(bytes);
  return false;
}

}  // namespace kiln
