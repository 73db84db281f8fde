// The micro tile: a block of accumulators in registers (rows × vectors of lanes) and the loop that adds products to it.
// Every contraction is built from it: one row is a row of a matrix or a pixel of an image, one column a column or an
// output channel. Accumulators are passed as values in row-major order: [row * vectors + vector].
#pragma once

#include "mlir_bridge/codegen/code_builder.hpp"
#include "mlir_bridge/cpu/contraction/lane_product.hpp"

namespace kiln::cpu {

using namespace codegen;

struct tile_shape {
  std::int64_t rows = 1, vectors = 1, lanes = 1;
  std::int64_t columns() const { return vectors * lanes; }
};

// Rows [first, last) of a tile. Sums of other rows do not change, and elements of other rows are not read.
struct row_range {
  std::int64_t first = 0, last = 0;
  friend auto operator<=>(const row_range&, const row_range&) = default;
};

// One factor of the products in memory, with strides in elements. The left factor provides one scalar per row and step;
// the right factor `columns` consecutive elements per step (its row_stride is unused).
struct factor {
  Value pointer;
  element_type type = element_type::f32;
  std::int64_t row_stride = 0;
  std::int64_t step_stride = 1;
  // For the right factor: how many steps ahead it is prefetched.
  std::int64_t prefetch_steps = 0;
  // If set, the elements of the right factor are lanes of neighbours along k, and the left factor provides the
  // neighbours of one lane per row and step.
  std::optional<lane_products> by_lane = {};
  // For the left factor: one load brings this many consecutive steps of a row, whose scalars the multiply-adds take
  // from the lanes of a register (factor_loads.hpp). 1: scalars are loaded one by one.
  std::int64_t steps_of_load = 1;
};

// Memory that is used after this loop. Each step prefetches one address of it into the second-level cache.
struct upcoming {
  // Null if nothing is to be prefetched.
  Value pointer = {};
  // Offset at step 0.
  Value offset = {};
  std::int64_t step_stride = 0;
  element_type type = element_type::f32;
};

// Returns the type in which products of this type are summed: f64 for f64, f32 for other floats, at least i32 for
// integers.
element_type accumulation_type(element_type type);

// Converts a value of compute type `from` to type `to`; both are floats, or `to` is an integer at least as wide.
Value widen(code_builder& code, Value v, element_type from, element_type to);

values zero_tile(code_builder& code, const tile_shape& tile, element_type accumulation);

// tile[r, c] += sum over k in [0, steps) of left[left_offset + r * row_stride + k * step_stride] * right[right_offset +
// k * step_stride + c], for r in `rows`. Returns the whole tile. left_offset is the offset of row 0, which may itself
// be outside the tensor.
values accumulate(code_builder& code, const tile_shape& tile, row_range rows, const factor& left, Value left_offset,
                  const factor& right, Value right_offset, std::int64_t steps, std::int64_t unroll,
                  element_type accumulation, values sums, const upcoming& next = {});

// The same for a number of steps that is known only at run time.
values accumulate(code_builder& code, const tile_shape& tile, const factor& left, Value left_offset,
                  const factor& right, Value right_offset, Value steps, element_type accumulation, values sums);

}  // namespace kiln::cpu
