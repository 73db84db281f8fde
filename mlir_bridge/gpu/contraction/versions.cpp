#include "mlir_bridge/gpu/contraction/versions.hpp"

#include <algorithm>
#include <cmath>

namespace kiln::gpu {

namespace {

// What it costs that a version takes `ratio` times as long as the best one at a sample. Almost twice as long weighs
// more than the same time lost at several samples: no number of rows should be a trap.
double loss_of(double ratio) {
  constexpr double trap = 1.7, additional = 0.6;
  return std::log(ratio) + (ratio > trap ? additional : 0);
}

}  // namespace

std::vector<version_range> choose_versions(std::span<const std::vector<double>> cycles, std::size_t most,
                                           std::span<const double> worth) {
  constexpr double never = std::numeric_limits<double>::infinity();
  const std::size_t samples = cycles.empty() ? 0 : cycles[0].size();
  std::vector<double> least(samples, never);
  for (const auto& of_version : cycles)
    for (std::size_t s = 0; s < samples; ++s) least[s] = std::min(least[s], of_version[s]);
  // best[c][s]: the least loss of time when the first s samples (numbers of rows) are divided into c ranges, each with
  // one version; the sample at which the last range begins, and its version.
  struct state {
    double loss = never;
    std::size_t begin = 0, version = 0;
  };
  std::vector<std::vector<state>> best(most + 1, std::vector<state>(samples + 1));
  best[0][0].loss = 0;
  for (std::size_t c = 1; c <= most; ++c)
    for (std::size_t begin = 0; begin < samples; ++begin)
      for (std::size_t v = 0; v < cycles.size() && best[c - 1][begin].loss < never; ++v) {
        double loss = best[c - 1][begin].loss + worth[v];
        for (std::size_t s = begin; s < samples && cycles[v][s] < never; ++s) {
          loss += loss_of(cycles[v][s] / least[s]);
          if (loss < best[c][s + 1].loss) best[c][s + 1] = {loss, begin, v};
        }
      }
  std::size_t count = 1;
  for (std::size_t c = 2; c <= most; ++c)
    if (best[c][samples].loss < best[count][samples].loss) count = c;
  std::vector<version_range> result;
  for (std::size_t end = samples; end > 0 && best[count][end].loss < never; --count) {
    const state& last = best[count][end];
    result.push_back({last.version, end - 1});
    end = last.begin;
  }
  std::ranges::reverse(result);
  return result;
}

dim rows_between(const dim& rows, std::int64_t above, std::int64_t most) {
  const auto at_most = [&](std::int64_t limit) {
    return limit == std::numeric_limits<std::int64_t>::max() ? dim(1) : 1 - dim::min(rows, limit + 1) / (limit + 1);
  };
  return above <= 0 ? at_most(most) : at_most(most) - at_most(above);
}

}  // namespace kiln::gpu
