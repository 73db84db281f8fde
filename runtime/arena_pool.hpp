// Memory of the host for runs of many plans, which take turns: a run takes a block and gives it back when it has ended,
// so there are as many blocks as there are runs at the same time, and the pages are warm. Any thread.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "runtime/device.hpp"

namespace kiln {

class arena_pool {
 public:
  explicit arena_pool(device& of) : device_(of) {}

  // Returns a block of at least `bytes`. Its contents are meaningless. Throws error{out_of_memory}.
  device_memory take(std::size_t bytes);
  void give_back(device_memory block);

 private:
  device& device_;
  std::mutex mutex_;
  std::vector<device_memory> free_;  // by size, the smallest first
};

// A block that goes back at the end of a scope.
class borrowed_block {
 public:
  borrowed_block(arena_pool& from, std::size_t bytes) : from_(from), block_(from.take(bytes)) {}
  ~borrowed_block() { from_.give_back(std::move(block_)); }
  borrowed_block(const borrowed_block&) = delete;
  borrowed_block& operator=(const borrowed_block&) = delete;
  std::byte* data() const { return block_.data(); }

 private:
  arena_pool& from_;
  device_memory block_;
};

}  // namespace kiln
