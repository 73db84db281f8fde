// The caches of all layers in one tensor, as modules with static caches have them: each layer takes its cache from the
// tensor, scatters a row into it, and the results are stacked again, which copies everything twice. This makes the
// layers update the tensor one after another (ir/ops/cache_update.hpp), so that it is copied once, or not at all where
// a run may change it in place. Comes before scattered_rows (simplify_movement).
#pragma once

#include <cstddef>

#include "ir/module.hpp"

namespace kiln {

class rewrite_log;

struct chain_cache_updates {
  rewrite_log* log = nullptr;
  // Smallest cache of one layer, in bytes. Copying fewer bytes takes less time than another launch for each layer.
  std::size_t least_bytes = 512 << 10;

  std::string_view name() const { return "chain_cache_updates"; }
  bool apply(module& m) const;
};

}  // namespace kiln
