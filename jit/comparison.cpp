#include "jit/comparison.hpp"

#include <fmt/format.h>

#include <cmath>

namespace kiln {
namespace {

double tolerance_of(element_type type, exactness computed) {
  if (!is_float(type)) return 0;
  if (computed == exactness::bytes) return 5e-2;
  if (computed == exactness::halves || (type != element_type::f32 && type != element_type::f64)) return 1e-2;
  return type == element_type::f64 ? 1e-6 : 1e-4;
}

bool same_special(double a, double b) { return (std::isnan(a) && std::isnan(b)) || a == b; }

}  // namespace

comparison compare(const literal& got, const literal& expected, exactness computed) {
  comparison c;
  c.tolerance = tolerance_of(expected.type().type, computed);
  if (got.type() != expected.type()) {
    c.reason = fmt::format("is {}, expected {}", got.type().str(), expected.type().str());
    return c;
  }
  double error = 0, norm = 0;
  std::int64_t count = got.type().element_count(), finite = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    double a = got.at(i), b = expected.at(i);
    if (!std::isfinite(a) || !std::isfinite(b)) {
      if (same_special(a, b)) continue;
      c.reason = fmt::format("element {} is {}, expected {}", i, a, b);
      c.max_error = c.relative_norm = INFINITY;
      return c;
    }
    // Different 64-bit integers can be equal as doubles.
    bool exact = is_float(expected.type().type) || got.at_int(i) == expected.at_int(i);
    double difference = exact ? std::fabs(a - b) : std::max(std::fabs(a - b), 1.0);
    c.max_error = std::max(c.max_error, difference);
    error += difference * difference;
    norm += b * b;
    ++finite;
  }
  c.rms_error = finite ? std::sqrt(error / static_cast<double>(finite)) : 0;
  c.relative_norm = error == 0 ? 0 : std::sqrt(error / std::max(norm, 1e-60));
  c.ok = c.relative_norm <= c.tolerance;
  if (!c.ok) c.reason = "beyond the tolerance";
  return c;
}

}  // namespace kiln
