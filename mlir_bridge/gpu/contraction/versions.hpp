// Which versions of a product of an open number of rows are compiled, and which of them computes it at which numbers of
// rows: one tile does not suit 7 rows and 7000. Each version is a stage of its own whose grid is empty at the other
// sizes. Plain data. Internal to mlir_bridge/gpu.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "ir/dim.hpp"

namespace kiln::gpu {

// A version computes the sizes after those of the range before it, up to the sample with this index.
struct version_range {
  std::size_t version = 0, last_sample = 0;
  friend bool operator==(const version_range&, const version_range&) = default;
};

// `cycles[v][s]` estimates version v at sample s; infinite where it cannot be used. At each sample at least one is
// finite. Returns at most `most` ranges that cover all samples, in their order. Each range must be worth its version:
// it makes all samples together faster by the factor exp(worth[v]), or some of them that would take almost twice as
// long.
std::vector<version_range> choose_versions(std::span<const std::vector<double>> cycles, std::size_t most,
                                           std::span<const double> worth);

// Returns 1 if rows is above `above` and at most `most`, else 0. INT64_MAX: any number above.
dim rows_between(const dim& rows, std::int64_t above, std::int64_t most);

}  // namespace kiln::gpu
