// The micro tile of contractions with open sizes (tile.hpp is for static sizes): rows × vectors of sums in registers.
// Strides and the number of steps are run-time values.
#pragma once

#include <functional>
#include <optional>

#include "mlir_bridge/cpu/contraction/tile.hpp"
#include "mlir_bridge/cpu/open_span.hpp"

namespace kiln::cpu {

// Returns the tile for open contractions: as many sums as the target's registers hold.
tile_shape open_tile(const kernel_emitter& e, element_type accumulation);
// The same for a known number of columns, and for factors whose neighbours share lanes.
tile_shape open_tile(const kernel_emitter& e, element_type accumulation, std::int64_t columns,
                     const std::optional<lane_products>& by_lane = {});

// The left factor: one scalar per row and step. Strides count elements.
struct open_left {
  element_type type = element_type::f32;
  // Address of step 0 for each row of the tile.
  values rows;
  // Stride from one step to the next.
  Value step;
};

// The right factor: `columns` consecutive elements per step, the first at `offset`.
struct open_right {
  Value pointer;
  element_type type = element_type::f32;
  Value offset, step;
  // If set, the elements are lanes of neighbours along the steps, and the left factor provides the neighbours of one
  // lane per row and step.
  std::optional<lane_products> by_lane = {};
};

// Returns `sums` plus the sum over steps [0, steps) of left * right. Sums are in row-major order: [row * vectors +
// vector].
values open_sums(code_builder& code, const tile_shape& tile, const open_left& left, const open_right& right,
                 Value steps, element_type accumulation, values sums);

// Calls body(row, column, vector) for the valid part of a tile: rows [0, rows) and columns [0, columns). `divides` is
// set if the columns are known to fill whole vectors. If the epilogue is cheap, whole tiles are written from registers,
// with constant rows. All others go through a buffer on the stack; `before` is called in front of them.
class open_tile_store {
 public:
  // `columns`: how many there are of all panels; 0 if that is open. Sums of fewer rows than the tile's may be written.
  open_tile_store(kernel_emitter& e, const tile_shape& tile, element_type accumulation, std::int64_t columns = 0);
  using row_body = std::function<void(Value row, const span_part& columns, Value computed)>;
  void write(std::span<const Value> sums, Value rows, Value columns, bool divides, const row_body& body,
             const std::function<void()>& before = nullptr) const;

 private:
  void write_registers(std::span<const Value> sums, const row_body& body) const;
  void write_memory(std::span<const Value> sums, Value rows, Value columns, bool divides, const row_body& body) const;
  void walk(Value columns, bool divides, const std::function<void(const span_part&)>& visit) const;
  kernel_emitter& e_;
  tile_shape tile_;
  element_type type_;
  std::int64_t columns_;
  bool light_;
  Value buffer_;
};

}  // namespace kiln::cpu
