// The likeliest ids of a large vocabulary, without sorting all of it. Used by sampling. Pure; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kiln {

// The largest logit; -inf if there is none. NaNs are ignored.
float largest(std::span<const float> logits);

// The ids of the `count` largest logits (all if there are fewer), by falling logits, the lowest of equal ones first.
// None is NaN.
std::vector<std::size_t> likeliest_ids(std::span<const float> logits, std::size_t count);

}  // namespace kiln
