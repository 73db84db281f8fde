#include "jit/tuning/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace kiln {
namespace {

double median_of(std::vector<double>& values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

timing summarize(std::vector<double> samples) {
  if (samples.empty()) return {};
  timing result;
  result.samples = static_cast<int>(samples.size());
  result.median = median_of(samples);
  for (double& s : samples) s = std::fabs(s - result.median);
  const double error =
      samples.size() < 5 ? std::numeric_limits<double>::infinity()
                         : 1.96 * 1.2533 * 1.4826 * median_of(samples) / std::sqrt(static_cast<double>(samples.size()));
  result.low = std::max(0.0, result.median - error);
  result.high = result.median + error;
  return result;
}

double percentile(const std::vector<double>& sorted, double p) {
  if (sorted.empty()) return 0;
  auto at = static_cast<std::size_t>(p * static_cast<double>(sorted.size() - 1) + 0.5);
  return sorted[std::min(at, sorted.size() - 1)];
}

bool clearly_faster(const timing& a, const timing& b, double margin) {
  return a.samples > 0 && b.samples > 0 && a.high < b.low && a.median <= b.median * (1 - margin);
}

}  // namespace kiln
