// The sum of each run of rows.
#pragma once

#include "ir/operation.hpp"

namespace kiln {

// inputs: data [rows, rest...], ids [rows] (i32 or i64), ascending; output: [segments, rest...], whose row s is the sum
// of the data's rows with the id s, in their order. Rows with ids outside of [0, segments) belong to none; a segment
// without rows is 0. Where the ids do not ascend, the sums are unspecified.
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
