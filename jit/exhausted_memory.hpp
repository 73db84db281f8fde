// What happens when LLVM cannot get memory. It does not throw; without a handler it aborts.
#pragma once

namespace kiln {

// `handler` must not return and must not allocate. At most once per process.
void when_memory_is_exhausted(void (*handler)());

}  // namespace kiln
