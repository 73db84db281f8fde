// The kind of error for sizes that a caller gives and a model does not take: outside of a range, in contradiction to
// each other, or against a guard of the model. Its number follows those of ir/error.hpp. The model stays usable.
#pragma once

#include "ir/error.hpp"

namespace kiln {

inline constexpr error_kind invalid_shape{static_cast<int>(error_kind::internal) + 1};

}  // namespace kiln
