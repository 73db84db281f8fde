// Keeps packed weights in the kernel cache: the results of the runtime's `prepare` launches, which later processes map.
#pragma once

#include <memory>

#include "jit/cache/kernel_cache.hpp"
#include "runtime/prepared_store.hpp"

namespace kiln {

// `cache` must outlive the result. `later`: store() returns before the cache has written
// (kernel_cache::store_raw_later).
std::unique_ptr<prepared_store> make_prepared_store(kernel_cache& cache, bool later = false);

}  // namespace kiln
