// What is known about symbolic dimensions: the range of each symbol, and what follows from the ranges for whole
// expressions. A symbol without a range counts as at least 1. Bounds are conservative: "unknown" is always a right
// answer. A value type without other state; const members may be called from any thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ir/dim.hpp"

namespace kiln {

class dim_facts {
 public:
  // `max` of INT64_MAX: no upper bound.
  void set_range(const std::string& symbol, std::int64_t min, std::int64_t max) { ranges_[symbol] = {min, max}; }

  // The largest number that d is known to reach at least, the smallest that it is known not to exceed; nullopt where
  // none is known.
  std::optional<std::int64_t> lower(const dim& d) const;
  std::optional<std::int64_t> upper(const dim& d) const;

  // Whether a >= b for all values that the symbols may have.
  bool at_least(const dim& a, const dim& b) const;
  // -1, 0, 1 for a < b, a == b, a > b, where one of them holds for all values.
  std::optional<int> order(const dim& a, const dim& b) const;

  // dim::min and dim::max, with operands dropped that never win.
  dim min(const dim& a, const dim& b) const;
  dim max(const dim& a, const dim& b) const;

 private:
  struct range {
    std::int64_t min, max;
  };
  using bound = std::optional<std::int64_t>;
  bound lower(const dim& d, int depth) const;
  bound upper(const dim& d, int depth) const { return negated(lower(dim(0) - d, depth)); }
  bound opaque_lower(const dim_terms& terms, int depth) const;
  bound relaxed_lower(const dim& d, int depth) const;
  bound atom_lower(const dim_atom& atom, int depth) const;
  bound atom_upper(const dim_atom& atom, int depth) const;
  static bound negated(bound b) { return b && *b != INT64_MIN ? bound(-*b) : std::nullopt; }

  std::map<std::string, range> ranges_;
};

}  // namespace kiln
