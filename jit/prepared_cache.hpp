// Packed weights in the kernel cache: what the runtime's `prepare` launches made of constants, mapped by later
// processes.
#pragma once

#include <memory>

#include "jit/cache/kernel_cache.hpp"
#include "runtime/prepared_store.hpp"

namespace kiln {

// Refers to `cache`, which must outlive it.
std::unique_ptr<prepared_store> make_prepared_store(kernel_cache& cache);

}  // namespace kiln
