// The right factor of a contraction of open sizes, packed in panels as wide as a tile: [batch..., panel, step, column
// of the panel]. The last panel is filled up with copies of the last column.
#pragma once

#include <functional>

#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/cpu/contraction/open_tile.hpp"

namespace kiln::cpu {

struct open_factor {
  value source;
  std::vector<dim> batch;  // leading sizes of the panels
  dim columns, steps;
  std::size_t column_axis;  // of the source
  // The indices of an element of the source.
  std::function<values(std::span<const Value> of_batch, Value step, Value column)> locate;
};

class open_panels {
 public:
  // Emits the stage that packs; no stage may be open. A factor that is a constant is packed once.
  open_panels(kernel_emitter& e, const open_factor& factor, const tile_shape& tile);

  const dim& count() const { return count_; }
  bool whole() const { return whole_; }  // every panel is full
  open_right panel(std::span<const Value> of_batch, Value panel) const;

 private:
  void pack(const open_factor& factor, std::span<const Value> of_batch, Value panel, bool full) const;

  kernel_emitter& e_;
  tile_shape tile_;
  dim count_;
  bool whole_;
  buffer packed_;
};

// The size, or what an open one is assumed to be for the size of work items.
std::int64_t usual_size(const dim& size);

// The offset of an element in a buffer.
Value offset_in(kernel_emitter& e, const buffer& memory, std::span<const Value> at);

values joined(std::span<const Value> first, std::initializer_list<Value> rest);

}  // namespace kiln::cpu
