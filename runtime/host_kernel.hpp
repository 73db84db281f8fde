// A kernel in the memory of this process, with the ABI of ir/native_kernel.hpp. `buffers` holds a pointer for each
// argument of the launch; the call computes the workgroups from `begin` to `end`. Any thread may call it.
#pragma once

#include <cstdint>

namespace kiln {

struct host_kernel {
  using entry = void (*)(void* const* buffers, std::int64_t begin, std::int64_t end);
  entry code = nullptr;

  // A kernel has no type in front of its first instruction. Clang's check of indirect calls would read it there.
  __attribute__((no_sanitize("function"))) void operator()(void* const* buffers, std::int64_t begin,
                                                           std::int64_t end) const {
    code(buffers, begin, end);
  }
};

}  // namespace kiln
