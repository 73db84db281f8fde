// Moves transposes towards the outputs: an operation on transposed values becomes the same operation on the
// untransposed values, followed by one transpose. That transpose later meets its inverse, or a reader that accepts any
// layout. The pass makes one forward sweep. Operands that were not transposed get the inverse transpose (free for
// broadcasts and constants), unless they outnumber the transposed ones.
#pragma once

#include "ir/module.hpp"

namespace kiln {

struct sink_transposes {
  // Whether to move the transpose if only one of two operands is transposed. A second application with ties would move
  // it back.
  bool ties = true;

  std::string_view name() const { return "sink_transposes"; }
  bool apply(module& m) const;
};

}  // namespace kiln
