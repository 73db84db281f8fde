// Loops over an axis whose size is known at run time only: whole vectors, and what they leave over as one vector that
// overlaps the last of them, or element by element where the span is shorter than a vector.
#pragma once

#include <functional>

#include "mlir_bridge/codegen/kernel_emitter.hpp"

namespace kiln::cpu {

using codegen::kernel_emitter;
using codegen::Value;

// `lanes` elements, of which the first is at `first`, which is a multiple of `multiple`.
struct span_part {
  Value first;
  std::int64_t lanes = 1, multiple = 1;
};

class open_span {
 public:
  // [low, high) of an axis; `low` and, up to a part that walk() treats by itself, `high` are multiples of `multiple`.
  open_span(kernel_emitter& e, Value low, Value high, std::int64_t lanes, std::int64_t multiple, bool divides)
      : e_(e), low_(low), high_(high), lanes_(lanes), multiple_(multiple), divides_(divides) {}

  // Visits every element at least once; elements of the last vectors perhaps twice.
  void walk(const std::function<void(const span_part&)>& visit) const;

 private:
  kernel_emitter& e_;
  Value low_, high_;
  std::int64_t lanes_, multiple_;
  bool divides_;  // the vectors leave nothing over
};

// The part of an axis of `size` elements that begins at `low`, a multiple of `block`, and has at most `block` elements.
open_span span_of_block(kernel_emitter& e, const dim& size, Value low, std::int64_t block, element_type type);

}  // namespace kiln::cpu
