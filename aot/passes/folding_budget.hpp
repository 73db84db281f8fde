// How much constant folding may compute and keep while one program is optimized. What goes beyond stays an operation,
// so the result is as right, and a model of kilobytes can neither keep the compiler busy for hours nor fill its memory.
#pragma once

#include <cstdint>

#include "ir/program.hpp"

namespace kiln {

class folding_budget {
 public:
  // `steps`, and more in proportion to the constants that the program has.
  explicit folding_budget(const program& p, double steps = 1e10);
  // Whether `at`, all of whose inputs are constants, may be evaluated; if so, what that takes is taken.
  bool take(const instruction& at);

 private:
  double steps_;  // additions, multiplications, elements moved: a double does not overflow
  double bytes_;
};

}  // namespace kiln
