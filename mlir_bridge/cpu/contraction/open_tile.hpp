// The micro tile of contractions whose sizes are open (tile.hpp is for static ones): rows × vectors of sums in
// registers, for factors whose strides and number of steps are values.
#pragma once

#include <functional>

#include "mlir_bridge/cpu/contraction/tile.hpp"
#include "mlir_bridge/cpu/open_span.hpp"

namespace kiln::cpu {

// The tile that open contractions use: as many sums as the target's registers hold.
tile_shape open_tile(const kernel_emitter& e, element_type accumulation);

// The left factor: one scalar for each row and step. Strides count elements.
struct open_left {
  element_type type = element_type::f32;
  values rows;  // the address of step 0 of each row of the tile
  Value step;   // from one step to the next
};

// The right factor: `columns` consecutive elements for each step, the first at `offset`.
struct open_right {
  Value pointer;
  element_type type = element_type::f32;
  Value offset, step;
};

// sums + the sums over [0, steps) of left * right, row-major: [row * vectors + vector].
values open_sums(code_builder& code, const tile_shape& tile, const open_left& left, const open_right& right,
                 Value steps, element_type accumulation, values sums);

// Writes sums to a buffer of [rows, columns] on the stack, and reads the valid part of it: body(row, column, vector)
// for rows [0, rows) and columns [0, columns). `divides`: the columns are known to fill whole vectors.
class open_tile_store {
 public:
  open_tile_store(kernel_emitter& e, const tile_shape& tile, element_type accumulation);
  using row_body = std::function<void(Value row, const span_part& columns, Value computed)>;
  void write(std::span<const Value> sums, Value rows, Value columns, bool divides, const row_body& body) const;

 private:
  kernel_emitter& e_;
  tile_shape tile_;
  element_type type_;
  Value buffer_;
};

}  // namespace kiln::cpu
