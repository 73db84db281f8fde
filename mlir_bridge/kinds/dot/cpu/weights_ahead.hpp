// Software prefetches of the weights of columns that are multiplied a little later. Groups of columns are read one
// after the other, some columns abreast, an order that hardware prefetchers predict badly.
#pragma once

#include "mlir_bridge/kinds/dot/cpu/block_weights.hpp"

namespace kiln::cpu {

class weights_ahead {
 public:
  // `columns` are read abreast.
  weights_ahead(kernel_emitter& e, const dot_sizes& sizes, const block_weights& weights, std::int64_t columns);

  // Prefetches codes of later columns (of a long column: codes of the same one), to be called where `bytes` of codes at
  // byte `place` are read.
  void codes(Value place, std::int64_t bytes);
  // Prefetches the scales and offsets of as many columns as are read abreast, from `column` on.
  void scales(Value column);

 private:
  void numbers(const buffer& of_blocks, Value column);
  kernel_emitter& e_;
  buffer codes_;
  std::vector<buffer> numbers_;  // scales and offsets that are in memory as they are
  std::int64_t columns_, blocks_, column_bytes_, ahead_;
};

}  // namespace kiln::cpu
