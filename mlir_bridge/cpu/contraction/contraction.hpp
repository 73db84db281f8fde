// The loop nest shared by dot, convolution and transposed convolution. For every batch, group and output position it
// sums left × right over window taps and steps and passes the sum to the fusion's epilogue. The operations differ only
// in the numbers below. All work items are independent; the sum of an element is never split between items.
//
//   result[batch, t..., group, column] =
//     sum over taps j... and k of left[batch, t * stride + first + j * tap_stride ..., group, k] * right[group, tap, k,
//     column]
//
// A tap whose input position lies outside the left tensor contributes nothing.
#pragma once

#include <functional>
#include <vector>

#include "mlir_bridge/codegen/kernel_emitter.hpp"
#include "mlir_bridge/cpu/contraction/tile.hpp"

namespace kiln::cpu {

using namespace codegen;

// Every P-th output of an axis (p, p + P, p + 2P, ...), where P is the number of phases. All outputs of a phase use the
// same taps at the same distances.
struct axis_phase {
  // Number of outputs of the phase.
  std::int64_t outputs = 0;
  // Input position of tap 0 for output 0.
  std::int64_t first = 0;
  std::int64_t taps = 1;
  // Tap j is window position window_first + j * window_step.
  std::int64_t window_first = 0, window_step = 1;
};

struct contraction_axis {
  // Extent of the left tensor.
  std::int64_t in = 1;
  // Input positions from one output of a phase to the next.
  std::int64_t stride = 1;
  // Input positions from one tap to the next.
  std::int64_t tap_stride = 1;
  // Number of window positions.
  std::int64_t window = 1;
  // Elements of the left tensor from one input position to the next.
  std::int64_t pitch = 0;
  std::vector<axis_phase> phases = {};

  // The largest number of outputs of a phase.
  std::int64_t outputs() const;
  // True if some tap of some output lies outside the left tensor.
  bool clipped() const;
};

// Panels [first, first + count) of the columns, with the width of `tile`. Only the last panel of packed columns may be
// partly filled.
struct column_segment {
  std::int64_t first_panel = 0, count = 0, first_column = 0;
  std::int64_t vectors = 1, lanes = 1;
  std::int64_t columns() const { return vectors * lanes; }
};

struct contraction {
  std::int64_t batches = 1, groups = 1;
  // Outermost axis first. The outputs along the last axis are the rows of tiles.
  std::vector<contraction_axis> axes;
  std::int64_t steps = 0;  // k
  // Columns of one group.
  std::int64_t columns = 0;

  // If set, a step covers the neighbours along k that share a lane: `steps` counts lanes, left_step is the number of
  // neighbours, and the elements of `right` are lanes (i32).
  std::optional<lane_products> by_lane = {};
  // Whether tiles are in matrix registers (matrix_tile.hpp). The shape of all tiles is that of choose_matrix_tile(),
  // `steps` is a multiple of matrix_steps, and no row of a tile is outside of the left tensor (set_image).
  bool matrix = false;

  buffer left;                  // strides in elements
  std::int64_t left_first = 0;  // element 0 of the left tensor in the buffer
  std::int64_t left_batch = 0, left_group = 0, left_step = 1;
  buffer right;
  std::int64_t right_group = 0, right_tap = 0, right_step = 0;
  // Elements from one packed panel to the next; 0 if the columns of all panels are contiguous.
  std::int64_t right_panel = 0;
  std::vector<column_segment> segments;

  // Rows of a tile.
  std::int64_t rows = 1;
  std::int64_t unroll = 1;
  std::int64_t step_block =
      0;  // steps that all tiles of an item take before the next ones; 0: all at once. Divides the steps.
  std::int64_t panels_per_item = 1, tiles_per_item = 1;
  // If true, an item's loop over panels is inside its loop over tiles.
  bool panels_inside = false;
  // How many steps ahead the right factor is prefetched; 0 leaves prefetching to the hardware.
  std::int64_t prefetch_steps = 0;
  bool fetch_results = false;  // whether a tile's place in the results, and what the epilogue reads there, is fetched
                               // before its sums are computed

  // Returns the result's indices except the last one for (batch, group, outputs...). The field below gives the offset
  // of a group along the last axis.
  std::function<values(Value batch, Value group, std::span<const Value> outputs)> locate;
  std::int64_t result_group_columns = 0;

  std::int64_t panels() const;
  // Number of row tiles of one batch, group and phase.
  std::int64_t tiles() const;
};

// Returns the distinct ranges of rows that the taps of the last axis need. Code is generated for each range, so more
// than a few make it large.
std::vector<row_range> row_ranges(const contraction_axis& axis, std::int64_t rows);

// Emits the stage that computes the contraction and the epilogue.
void emit_contraction(kernel_emitter& e, const contraction& c);

}  // namespace kiln::cpu
