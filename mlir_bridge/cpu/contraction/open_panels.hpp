// Packs the right factor of a contraction with open sizes into panels as wide as a tile: [batch..., panel, step, column
// of the panel]. The last panel is padded with copies of the last column.
#pragma once

#include <functional>
#include <optional>

#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/cpu/contraction/open_tile.hpp"

namespace kiln::cpu {

struct open_factor {
  value source;
  // Sizes of the leading (batch) axes of the panels.
  std::vector<dim> batch;
  dim columns, steps;
  // Axis of the columns in the source tensor.
  std::size_t column_axis;
  // Returns the indices of an element in the source tensor.
  std::function<values(std::span<const Value> of_batch, Value step, Value column)> locate;
  // 1, or 0 where nobody needs the panels: then the stage has no work items.
  dim used = 1;
  // If set, so many neighbouring steps share a lane, and their number divides that of the steps.
  std::optional<lane_products> by_lane = {};
  // Returns whether a step exists. The elements of others are zero; null: all do.
  std::function<Value(Value step)> counts = {};
};

class open_panels {
 public:
  // Emits the packing stage; no stage may be open. If the factor is a constant, the runtime runs this stage once.
  open_panels(kernel_emitter& e, const open_factor& factor, const tile_shape& tile);

  const dim& count() const { return count_; }
  // True if every panel is full.
  bool whole() const { return whole_; }
  open_right panel(std::span<const Value> of_batch, Value panel) const;

 private:
  void pack(const open_factor& factor, std::span<const Value> of_batch, Value panel, bool full) const;
  // Loads a vector of columns of one step; `full`: the panel is.
  Value columns_of(const open_factor& factor, std::span<const Value> of_batch, Value step, Value column,
                   bool full) const;

  kernel_emitter& e_;
  tile_shape tile_;
  dim count_;
  bool whole_;
  std::optional<lane_products> by_lane_;
  buffer packed_;
};

// Returns the size, or for an open size the value that is assumed when work items are sized.
std::int64_t usual_size(const dim& size);

// Returns the offset of an element in a buffer.
Value offset_in(kernel_emitter& e, const buffer& memory, std::span<const Value> at);

values joined(std::span<const Value> first, std::initializer_list<Value> rest);

}  // namespace kiln::cpu
