// Operations that select elements.
#pragma once

#include "ir/operation.hpp"

namespace kiln {

// The k largest (or smallest) elements along `axis`, sorted; equal elements keep the order of their indices. outputs:
// values, indices (i64).
struct top_k {
  std::int64_t k = 1;
  std::int64_t axis = -1;
  bool largest = true;

  std::string_view name() const { return "top_k"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("k", self.k);
    f("axis", self.axis);
    f("largest", self.largest);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

}  // namespace kiln
