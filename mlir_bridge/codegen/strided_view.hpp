// A value that is a part of a tensor in memory. Generators can address it with strides instead of copying it.
#pragma once

#include <optional>
#include <vector>

#include "mlir_bridge/codegen/kernel_emitter.hpp"

namespace kiln::codegen {

// Element [i...] of the value is element offset + Σ i · strides of `memory`. Axes of extent 1 have stride 0.
struct strided_view {
  buffer memory;
  std::int64_t offset = 0;
  std::vector<std::int64_t> strides;
};

// The extents of v. If the first one is open, it counts as 2: strides do not depend on it. nullopt if another one is
// open.
std::optional<std::vector<std::int64_t>> extents_but_first(value v);

// Returns the view of v, looking through slices and reshapes that only add or remove axes of extent 1. nullopt if v is
// no such value, or if an axis other than the first is open.
std::optional<strided_view> find_strided_view(const kernel_emitter& e, value v);

}  // namespace kiln::codegen
