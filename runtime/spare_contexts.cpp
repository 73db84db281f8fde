#include "runtime/spare_contexts.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace kiln {
namespace {

// Blocks up to this size may be much larger than what is in them.
constexpr std::size_t small = std::size_t{2} << 20;

// Whether a block of `size` bytes is taken for `bytes`.
bool fits(std::size_t size, std::size_t bytes) { return size >= bytes && size <= std::max(bytes + bytes / 4, small); }

// The size of a new block for `bytes`, in which larger tensors have room as well.
std::size_t with_room(std::size_t bytes) {
  constexpr std::size_t least = std::size_t{64} << 10;
  return bytes == 0 || bytes > small ? bytes : std::bit_ceil(std::max(bytes, least));
}

}  // namespace

device_memory spare_contexts::take_tensors(std::size_t bytes, device& target) {
  {
    std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(tensors_, [&](const device_memory& m) { return fits(m.size(), bytes); });
    if (found != tensors_.end()) {
      device_memory result = std::move(*found);
      tensors_.erase(found);
      return result;
    }
  }
  return target.allocate(with_room(bytes));
}

void spare_contexts::give_back(device_memory tensors) noexcept {
  constexpr std::size_t most = 4;
  device_memory dropped;  // freed after the lock
  std::lock_guard lock(mutex_);
  try {
    if (tensors_.size() == most) {
      dropped = std::move(tensors_.front());
      tensors_.erase(tensors_.begin());
    }
    tensors_.push_back(std::move(tensors));
  } catch (const std::bad_alloc&) {
    // It is freed instead.
  }
}

void spare_contexts::add_streams(std::size_t count, device& target) {
  std::vector<std::unique_ptr<device_stream>> made;
  while (made.size() < count) made.push_back(target.make_stream());
  std::lock_guard lock(mutex_);
  streams_ = std::move(made);
}

spare_context spare_contexts::take() {
  std::lock_guard lock(mutex_);
  spare_context result;
  if (free_.empty()) {
    if (streams_.empty()) return result;
    result.stream = std::move(streams_.back());
    streams_.pop_back();
    return result;
  }
  result = std::move(free_.back());
  free_.pop_back();
  return result;
}

std::unique_ptr<device_graph> spare_contexts::take_graph(const spare_graph& like) {
  std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(graphs_, [&](const spare_graph& g) {
    return g.library == like.library && g.block == like.block && g.nodes == like.nodes;
  });
  if (found == graphs_.end()) return nullptr;
  auto result = std::move(found->graph);
  graphs_.erase(found);
  return result;
}

bool spare_contexts::has_graphs() const {
  std::lock_guard lock(mutex_);
  return !graphs_.empty();
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

void spare_contexts::give_back(std::vector<spare_graph> ended) noexcept {
  constexpr std::size_t most = 16;
  std::vector<spare_graph> dropped;  // freed after the lock
  std::lock_guard lock(mutex_);
  try {
    for (spare_graph& graph : ended) graphs_.push_back(std::move(graph));
    while (graphs_.size() > most) {
      dropped.push_back(std::move(graphs_.front()));
      graphs_.erase(graphs_.begin());
    }
  } catch (const std::bad_alloc&) {
    // They are freed instead.
  }
}

bool fit(device_memory& memory, std::size_t bytes, device& target, bool for_later) {
  if (fits(memory.size(), bytes)) return true;
  memory = {};
  memory = target.allocate(for_later ? with_room(bytes) : bytes);
  return false;
}

}  // namespace kiln
