// Loops over an axis whose size is known only at run time. The axis is divided into whole vectors; the remainder is one
// vector that overlaps the last of them or, if the span is shorter than a vector, single elements.
#pragma once

#include <functional>

#include "mlir_bridge/codegen/kernel_emitter.hpp"

namespace kiln::cpu {

using codegen::kernel_emitter;
using codegen::Value;

// `lanes` elements, the first at `first`, which is a multiple of `multiple`.
struct span_part {
  Value first;
  std::int64_t lanes = 1, multiple = 1;
};

class open_span {
 public:
  // The range [low, high) of an axis. `low` and, except at the end of the axis, `high` are multiples of `multiple`.
  open_span(kernel_emitter& e, Value low, Value high, std::int64_t lanes, std::int64_t multiple, bool divides)
      : e_(e), low_(low), high_(high), lanes_(lanes), multiple_(multiple), divides_(divides) {}

  // Visits every element at least once. Elements of the last vectors may be visited twice.
  void walk(const std::function<void(const span_part&)>& visit) const;

 private:
  kernel_emitter& e_;
  Value low_, high_;
  std::int64_t lanes_, multiple_;
  // True if the range is known to be divided evenly by the lanes.
  bool divides_;
};

// Returns the block of an axis of `size` elements that begins at `low` (a multiple of `block`) and has at most `block`
// elements.
open_span span_of_block(kernel_emitter& e, const dim& size, Value low, std::int64_t block, element_type type);

}  // namespace kiln::cpu
