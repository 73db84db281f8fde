// Sums of consecutive rows that have the same id.
#pragma once

#include "ir/operation.hpp"

namespace kiln {

// inputs: data [rows, rest...], ids [rows] (i32 or i64) in ascending order. output: [segments, rest...]; row s is the
// sum of the data rows with id s, added in order. Rows with ids outside of [0, segments) are ignored; a segment without
// rows is 0. If the ids are not ascending, the sums are unspecified.
struct segment_sum {
  std::int64_t segments = 0;

  std::string_view name() const { return "segment_sum"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("segments", self.segments);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

}  // namespace kiln
