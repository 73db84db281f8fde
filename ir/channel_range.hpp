// Recognizes a slice that takes a range of the channels of a channels_last image.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "ir/instruction.hpp"
#include "ir/ops/movement.hpp"

namespace kiln {

// Returns the first channel if the instruction is a slice of neighbouring elements of the innermost axis that keeps all
// other axes whole. nullopt for any other instruction.
inline std::optional<std::int64_t> first_of_channels(const instruction& at) {
  const auto* s = at.op().get_if<slice>();
  if (!s || s->starts.empty() || s->steps.back() != 1) return std::nullopt;
  const std::vector<dim>&from = at.inputs()[0].type().dims, &to = at.outputs()[0].dims;
  for (std::size_t axis = 0; axis + 1 < to.size(); ++axis)
    if (s->starts[axis] != 0 || s->steps[axis] != 1 || to[axis] != from[axis]) return std::nullopt;
  return s->starts.back();
}

}  // namespace kiln
