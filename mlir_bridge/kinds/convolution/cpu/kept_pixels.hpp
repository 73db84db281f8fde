// Pixels of a line whose channels wait on the stack until all of them are computed, to be normalized.
#pragma once

#include <functional>
#include <vector>

#include "mlir_bridge/cpu/contraction/blocking.hpp"
#include "mlir_bridge/cpu/contraction/tile_writer.hpp"

namespace kiln::cpu {

using namespace codegen;

class kept_pixels {
 public:
  // The anchor normalizes what is computed from the result of `window` (ir/normalized_window.hpp). Create it in the
  // open stage in front of the loops, because it allocates stack memory. `segments` cover the channels without gaps.
  kept_pixels(kernel_emitter& emitter, const instruction& window, std::vector<column_segment> segments,
              std::int64_t most);
  // Keeps the pixels of a tile, computed from the window's sums. `first` is the first pixel of the line that is kept.
  void keep(Value first, const tile_shape& shape, const values& sums, const tile_place& place);
  // Normalizes the channels of the pixel at these indices, and stores the anchor's results.
  void normalize(Value first, values pixel);

 private:
  Value sum_of(Value row, const std::function<Value(Value sum, Value x)>& add);
  kernel_emitter& e;
  code_builder& code;
  value window_, normal_;
  std::vector<column_segment> segments_;
  std::int64_t channels_;
  element_type type_;
  Value memory_;
};

}  // namespace kiln::cpu
