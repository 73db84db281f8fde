// Limits on what constant folding may compute and keep for one program. Operations beyond the limits are not folded;
// the result stays correct. Without them a small file could keep the compiler busy for hours or fill its memory.
#pragma once

#include <cstdint>

#include "ir/program.hpp"

namespace kiln {

class folding_budget {
 public:
  // Allows `steps`, plus a number in proportion to the size of the program's constants.
  explicit folding_budget(const program& p, double steps = 1e10);
  // Returns whether `at`, whose inputs are all constants, may be evaluated, and charges its cost to the budget if so.
  bool take(const instruction& at);

 private:
  double steps_;  // additions, multiplications and moved elements; a double, because it does not overflow
  double bytes_;
};

}  // namespace kiln
