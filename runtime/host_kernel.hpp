// A CPU kernel that is loaded into this process. A call computes the workgroups from `begin` up to, not including,
// `end`; `buffers` has one pointer for each argument of the launch (ir/native_kernel.hpp). Any thread may call it.
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
