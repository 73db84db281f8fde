// dot with one or two rows on the left and a row-major matrix on the right, which is read once, several whole lines at
// a time, because memory is fastest where addresses follow one another; the sums are in the first-level cache
// meanwhile. Threads divide the columns, or the lines if these are short.
#pragma once

#include "mlir_bridge/codegen/kernel_emitter.hpp"

namespace kiln::cpu {

using namespace codegen;

struct dot_sizes {
  std::vector<std::int64_t> batch;
  std::int64_t m = 0, n = 0, k = 0;
};

inline constexpr std::int64_t most_streaming_rows = 2;

// The anchor is a dot without transpose_b and with m <= most_streaming_rows. The configuration's "lines" at once,
// "sums_kb" (KiB of sums in the first-level cache), "prefetch" (lines ahead, 0 for none) and "splits" (parts of the
// lines with sums of their own) overrule the choice.
void emit_streaming_dot(kernel_emitter& e, const dot_sizes& sizes, bool transpose_a);

}  // namespace kiln::cpu
