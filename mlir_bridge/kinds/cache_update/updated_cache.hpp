// A cache that a kernel updates (ir/ops/cache_update.hpp), for the generators that store its rows: the stage of its own
// that cache_update has, and attention that appends the rows itself. Internal to mlir_bridge.
#pragma once

#include <optional>

#include "mlir_bridge/codegen/kernel_emitter.hpp"

namespace kiln {

struct updated_cache {
  value rows;              // what is written
  codegen::buffer memory;  // the output that holds the updated cache
  std::size_t axis = 0;    // along which the rows are written
  codegen::buffer places;  // their positions: one for each batch, or one for all
  bool one_place = true;
  std::optional<codegen::buffer> layer;  // the number of the layer whose part of the cache is written
  dim rows_of_layer, layers;             // rows along the axis of one layer, over all axes before it
  dim last_place;                        // the largest position

  // Emit loads in the open stage. Positions and layers are clamped to what the cache has.
  codegen::Value place(codegen::kernel_emitter& e, codegen::Value batch) const;
  codegen::Value layer_number(codegen::kernel_emitter& e) const;  // only if there is a layer
};

// Emits a stage that copies a value to a buffer (the pointwise generators of each target).
using copy_function = void (*)(codegen::kernel_emitter&, value, const codegen::buffer&, bool prepare);

// Emits the copy of the cache to the output of the update `at`, which the runtime leaves out if both share their
// memory. The caller stores the rows in a later stage.
updated_cache begin_update(codegen::kernel_emitter& e, const instruction& at, copy_function copy);

}  // namespace kiln
