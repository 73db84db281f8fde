// Kinds of errors for requests to a language model that it cannot serve. Their numbers follow that of
// ir/invalid_shape.hpp. The sequences stay as they were, and the model stays usable.
#pragma once

#include "ir/invalid_shape.hpp"

namespace kiln {

// An id that is not in the vocabulary, an empty prompt, or a mask that contradicts the prompt.
inline constexpr error_kind invalid_sequence{static_cast<int>(invalid_shape) + 1};
// There is no room for more ids: the context, the cache or the positions of the model are used up.
inline constexpr error_kind context_full{static_cast<int>(invalid_shape) + 2};

}  // namespace kiln
