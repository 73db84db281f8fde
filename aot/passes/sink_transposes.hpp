// Moves transposes towards the outputs: an operation on transposed values becomes the same operation on the values as
// they are stored, followed by one transpose, which then meets its inverse or a reader that takes any layout. One
// forward sweep; operands that were not transposed get the inverse (free for broadcasts and constants) where they are
// not the majority.
#pragma once

#include "ir/module.hpp"

namespace kiln {

struct sink_transposes {
  bool ties = true;  // whether one operand of two is moved; a second application with ties would move it back

  std::string_view name() const { return "sink_transposes"; }
  bool apply(module& m) const;
};

}  // namespace kiln
