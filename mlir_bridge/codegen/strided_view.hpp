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

// Returns the view of v, looking through slices and reshapes that only add or remove axes of extent 1. nullopt if v is
// no such value.
std::optional<strided_view> find_strided_view(const kernel_emitter& e, value v);

}  // namespace kiln::codegen
