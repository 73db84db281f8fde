// Requests to memory for the weights of columns that are multiplied a little later. Groups of columns are read one
// after the other, some columns abreast; the processor's own requests follow such an order badly.
#pragma once

#include "mlir_bridge/kinds/dot/cpu/block_weights.hpp"

namespace kiln::cpu {

class weights_ahead {
 public:
  // `columns` are read abreast.
  weights_ahead(kernel_emitter& e, const dot_sizes& sizes, const block_weights& weights, std::int64_t columns);

  // Asks for the codes of later columns (of long ones: of the same column) when `bytes` of them at byte `place` are
  // read.
  void codes(Value place, std::int64_t bytes);
  // Asks for the scales and offsets of as many columns as are read from `column` on.
  void scales(Value column);

 private:
  void numbers(const buffer& of_blocks, Value column);
  kernel_emitter& e_;
  buffer codes_;
  std::vector<buffer> numbers_;  // scales and offsets that are in memory as they are
  std::int64_t columns_, blocks_, column_bytes_, ahead_;
};

}  // namespace kiln::cpu
