#include "mlir_bridge/codegen/open_sizes.hpp"

#include <numeric>

namespace kiln::codegen {

std::int64_t known_factor(const dim& size) {
  if (size.is_static()) return size.value();
  std::int64_t factor = 0;
  for (const auto& [atoms, coefficient] : size.terms()) factor = std::gcd(factor, coefficient);
  return factor;
}

std::int64_t known_bound(const dim& size) { return size.is_static() ? size.value() : INT64_MAX; }

bool is_smaller_part(const dim& a, const dim& b) {
  if (a.is_static() && b.is_static()) return a.value() < b.value();
  dim quotient;
  if (b != 0 && a != 0 && divides_exactly(b, a, quotient)) return true;
  // A heuristic: a number is a factor of an open size more often than the reverse.
  return a.is_static();
}

bool dim_order::operator()(const dim& a, const dim& b) const {
  if (a.is_static() != b.is_static()) return a.is_static();
  return a.is_static() ? a.value() < b.value() : a.str() < b.str();
}

}  // namespace kiln::codegen
