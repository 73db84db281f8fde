// Handles failed allocations in LLVM. LLVM does not throw std::bad_alloc; without a handler it aborts.
#pragma once

namespace kiln {

// Installs `handler`, which must neither return nor allocate. May be called once per process.
void when_memory_is_exhausted(void (*handler)());

}  // namespace kiln
