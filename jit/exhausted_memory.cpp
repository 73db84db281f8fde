#include "jit/exhausted_memory.hpp"

#include <llvm/Support/ErrorHandling.h>

namespace kiln {

void when_memory_is_exhausted(void (*handler)()) {
  llvm::install_bad_alloc_error_handler([](void* data, const char*, bool) { reinterpret_cast<void (*)()>(data)(); },
                                        reinterpret_cast<void*>(handler));
}

}  // namespace kiln
