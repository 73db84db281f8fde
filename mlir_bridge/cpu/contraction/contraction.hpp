// The one loop nest behind dot, convolution and transposed convolution: for every batch, group and output position, the
// sum over window taps and steps of left × right, given to the fusion's epilogue. What differs between the operations
// is in the numbers below. All work items are independent; the sum of an element is never split between items.
//
//   result[batch, t..., group, column] =
//     sum over taps j... and k of left[batch, t * stride + first + j * tap_stride ..., group, k] * right[group, tap, k,
//     column]
//
// where a tap whose input position lies outside of the left tensor contributes nothing.
#pragma once

#include <functional>
#include <vector>

#include "mlir_bridge/codegen/kernel_emitter.hpp"
#include "mlir_bridge/cpu/contraction/tile.hpp"

namespace kiln::cpu {

using namespace codegen;

// The outputs p, p + P, p + 2P, ... of an axis, P the number of phases: they all see the window the same way.
struct axis_phase {
  std::int64_t outputs = 0;  // how many
  std::int64_t first = 0;    // input position of tap 0 for output 0
  std::int64_t taps = 1;
  std::int64_t window_first = 0, window_step = 1;  // tap j is window position window_first + j * window_step
};

struct contraction_axis {
  std::int64_t in = 1;          // extent of the left tensor
  std::int64_t stride = 1;      // input positions from one output of a phase to the next
  std::int64_t tap_stride = 1;  // input positions from one tap to the next
  std::int64_t window = 1;      // window positions
  std::int64_t pitch = 0;       // left elements from one input position to the next
  std::vector<axis_phase> phases = {};

  std::int64_t outputs() const;  // the most that a phase has
  bool clipped() const;          // whether some tap of some output lies outside of the left tensor
};

// Panels [first, first + count) of the columns: `tile` gives their width. Only the last panel of packed columns may be
// partly filled.
struct column_segment {
  std::int64_t first_panel = 0, count = 0, first_column = 0;
  std::int64_t vectors = 1, lanes = 1;
  std::int64_t columns() const { return vectors * lanes; }
};

struct contraction {
  std::int64_t batches = 1, groups = 1;
  std::vector<contraction_axis> axes;  // outermost first; the last one's outputs are the rows of tiles
  std::int64_t steps = 0;              // k
  std::int64_t columns = 0;            // of one group

  // Where set, a step is four neighbours along k: `steps` counts them, left_step is 4, and the elements of `right` are
  // lanes of four bytes.
  std::optional<byte_products> bytes = {};

  buffer left;  // strides in elements
  std::int64_t left_batch = 0, left_group = 0, left_step = 1;
  buffer right;
  std::int64_t right_group = 0, right_tap = 0, right_step = 0;
  std::int64_t right_panel = 0;  // of packed panels; 0 where the columns of all panels lie side by side
  std::vector<column_segment> segments;

  std::int64_t rows = 1;  // of a tile
  std::int64_t unroll = 1;
  std::int64_t step_block =
      0;  // steps that all tiles of an item take before the next ones; 0: all at once. Divides the steps.
  std::int64_t panels_per_item = 1, tiles_per_item = 1;
  bool panels_inside = false;       // whether an item's loop over panels is inside that over tiles
  std::int64_t prefetch_steps = 0;  // how far ahead the right factor is prefetched; 0: left to the hardware
  bool fetch_results = false;  // whether a tile's place in the results, and what the epilogue reads there, is fetched
                               // before its sums are computed

  // Indices of the result, all but the last, of (batch, group, outputs...), and the last one's offset of a group.
  std::function<values(Value batch, Value group, std::span<const Value> outputs)> locate;
  std::int64_t result_group_columns = 0;

  std::int64_t panels() const;
  std::int64_t tiles() const;  // row tiles of one batch, group and phase
};

// The distinct ranges of rows that the taps of the last axis need; more than a few make the code large.
std::vector<row_range> row_ranges(const contraction_axis& axis, std::int64_t rows);

// Emits the stage that computes the contraction and the epilogue.
void emit_contraction(kernel_emitter& e, const contraction& c);

}  // namespace kiln::cpu
