// Splits a concat of very many tensors into a tree of concats, because the arguments of a kernel and the time to
// compile it grow with the number of tensors that it reads. Comes last: simplify_movement merges concats of concats.
#pragma once

#include "ir/module.hpp"

namespace kiln {

inline constexpr std::size_t most_joined_inputs = 128;  // tensors that one concat joins

struct split_concats {
  std::string_view name() const { return "split_concats"; }
  bool apply(module& m) const;
};

}  // namespace kiln
