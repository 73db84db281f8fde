// Caches of a fixed number of rows, as modules with static caches have them: each layer scatters a row into its cache.
// The cache may be an input of its own, or a part of a tensor for all layers, whose results are stacked again, which
// copies everything twice. This makes updates of caches (ir/ops/cache_update.hpp) of the scatters, those of one tensor
// one after another, so that it is copied once, or not at all where a run may change it in place. Comes before
// scattered_rows (simplify_movement), which reads and writes all rows.
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
