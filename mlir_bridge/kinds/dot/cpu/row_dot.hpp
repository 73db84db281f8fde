// dot of a few rows with a transposed right matrix that is not worth packing (the keys of an attention, one token at a
// time): both factors run along k, so the sums are vectors along k that are added up at the end.
#pragma once

#include "mlir_bridge/kinds/dot/cpu/streaming_dot.hpp"

namespace kiln::cpu {

inline constexpr std::int64_t most_row_dot_rows = 4;

// The anchor is a dot with transpose_b, m <= most_row_dot_rows and a left matrix whose rows are contiguous. The
// configuration's "columns" at a time overrules the choice.
void emit_row_dot(kernel_emitter& e, const dot_sizes& sizes);

}  // namespace kiln::cpu
