// Erases unused instructions, modules and kernels. Parameters stay, because they are the model's interface.
#pragma once

#include "ir/program.hpp"

namespace kiln {

struct dead_code {
  std::string_view name() const { return "dead_code"; }
  bool apply(program& p) const;
};

}  // namespace kiln
