// Converts a row of logits from a model's element type to f32. Pure; any thread.
#pragma once

#include <cstddef>
#include <span>

#include "ir/element_type.hpp"

namespace kiln {

// `row` holds as many elements of `type` as `result` has.
void widen_logits(element_type type, std::span<const std::byte> row, std::span<float> result);

}  // namespace kiln
