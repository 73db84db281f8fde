// Known facts about symbolic dimensions: the range of each symbol and the bounds that follow for expressions. A symbol
// without a range is at least 1. Bounds are conservative, so "unknown" is always a correct answer. A value type; const
// members may be called from any thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ir/dim.hpp"

namespace kiln {

class dim_facts {
 public:
  // A `max` of INT64_MAX means no upper bound.
  void set_range(const std::string& symbol, std::int64_t min, std::int64_t max) { ranges_[symbol] = {min, max}; }
  // The symbol is at least `min` and never above `most`, an expression without it: the index of a trip and the number
  // of trips.
  void set_range(const std::string& symbol, std::int64_t min, const dim& most) {
    set_range(symbol, min, upper(most).value_or(INT64_MAX));
    if (!most.is_static()) mosts_[symbol] = most;
  }

  // The best known lower and upper bounds of d, inclusive; nullopt if none is known.
  std::optional<std::int64_t> lower(const dim& d) const;
  std::optional<std::int64_t> upper(const dim& d) const;

  // Whether a >= b is known to hold for all values of the symbols.
  bool at_least(const dim& a, const dim& b) const;
  // Returns -1, 0 or 1 if a < b, a == b or a > b is known to hold for all values of the symbols; nullopt otherwise.
  std::optional<int> order(const dim& a, const dim& b) const;

  // Like dim::min and dim::max, but drops operands that can never win.
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
  std::optional<real_range> real_bounds(const dim_atom& atom, int depth) const;
  static bound negated(bound b) { return b && *b != INT64_MIN ? bound(-*b) : std::nullopt; }

  std::map<std::string, range> ranges_;
  std::map<std::string, dim> mosts_;
};

}  // namespace kiln
