// Marks an output of the main module whose size depends on data (a bounded dynamic dimension).
#pragma once

#include "ir/ops/structure.hpp"

namespace kiln {

// inputs: data, count i64[1]. Returns `data` unchanged. Only the first `count` elements along `axis` are valid; the
// rest is padding. Only outputs of the main module may be such values (nested for several axes), and every count must
// also be an output of the module. Costs nothing at run time. evaluate() removes the padding, so its literal is smaller
// than the shape.
struct bounded {
  std::int64_t axis = 0;

  std::string_view name() const { return "counted"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("axis", self.axis);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// Returns the first `count` elements of a tensor along `axis`. Throws error{invalid_model} if the count is outside the
// axis.
literal first_of(const literal& data, std::int64_t axis, std::int64_t count);

}  // namespace kiln
