#include "bench/session/difference.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace kiln::bench {

double difference(const std::vector<literal>& a, const std::vector<literal>& b) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t o = 0; o < std::min(a.size(), b.size()); ++o) {
    if (a[o].type() != b[o].type()) return INFINITY;
    double largest = 1e-2, most = 0;
    for (std::int64_t i = 0; i < a[o].type().element_count(); ++i) {
      const double x = a[o].at(i), y = b[o].at(i);
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      if (!std::isfinite(x) || !std::isfinite(y)) return INFINITY;
      largest = std::max(largest, std::abs(y)), most = std::max(most, std::abs(x - y));
    }
    worst = std::max(worst, most / largest);
  }
  return worst;
}

}  // namespace kiln::bench
