// The caller's functions for the memory of a host device: run memory, tensors and prepared constants. Called by any
// thread, perhaps by several at once.
#pragma once

#include <cstddef>
#include <functional>

namespace kiln {

// Both are set, or neither, which means operator new.
struct host_allocator {
  // Returns memory of this many bytes, aligned to `alignment`, a power of two. Null if there is none. Must not throw.
  std::function<void*(std::size_t bytes, std::size_t alignment)> allocate = nullptr;
  // Takes back memory of allocate(), with its size. Must not throw.
  std::function<void(void* memory, std::size_t bytes)> release = nullptr;
};

}  // namespace kiln
