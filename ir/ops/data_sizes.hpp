// States which sizes of a program the data decide (ir/size_stages.hpp).
#pragma once

#include "ir/operation.hpp"

namespace kiln {

// inputs: data, then one value i64[1] for each element of `sizes`. Returns `data` unchanged. `sizes` are symbols of the
// program, or their values once it is bound. A run must compute these numbers: evaluate() and the runtime throw
// error{invalid_shape} if it computes others, because then the program was bound for other data. Only an output of the
// main module may be such a value. Costs one read of each number at the end of a run.
struct data_sizes {
  std::vector<dim> sizes;

  std::string_view name() const { return "data_sizes"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("sizes", self.sizes);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// Throws error{invalid_shape} unless a run computed the size for which the program is bound.
void check_data_size(std::int64_t computed, std::int64_t bound);

}  // namespace kiln
