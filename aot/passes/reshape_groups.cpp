#include "aot/passes/reshape_groups.hpp"

#include <algorithm>

namespace kiln {
namespace {

std::vector<std::size_t> other_than_one(const std::vector<dim>& dims) {
  std::vector<std::size_t> axes;
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (!(dims[i] == dim(1))) axes.push_back(i);
  return axes;
}

// Returns true if a < b for all sizes, false if a > b, and none if that is not known. `a` and `b` are not equal.
std::optional<bool> is_less(const dim& a, const dim& b) {
  if (a.is_static() && b.is_static()) return a.value() < b.value();
  if (dim quotient; divides_exactly(b, a, quotient)) return true;
  if (dim quotient; divides_exactly(a, b, quotient)) return false;
  const dim_terms difference = (b - a).terms();
  auto is_positive = [](const auto& term) { return term.second > 0; };
  if (std::ranges::all_of(difference, is_positive)) return true;
  return std::ranges::none_of(difference, is_positive) ? std::optional(false) : std::nullopt;
}

}  // namespace

std::optional<std::vector<reshape_group>> reshape_groups(const std::vector<dim>& from, const std::vector<dim>& to) {
  auto has_zero = [](const std::vector<dim>& dims) {
    return std::any_of(dims.begin(), dims.end(), [](const dim& d) { return d == dim(0); });
  };
  if (has_zero(from) || has_zero(to)) return std::nullopt;
  auto in = other_than_one(from), out = other_than_one(to);
  std::vector<reshape_group> groups;
  std::size_t i = 0, o = 0;
  while (i < in.size() && o < out.size()) {
    reshape_group group{{in[i]}, {out[o]}};
    dim have = from[in[i++]], want = to[out[o++]];
    while (!(have == want)) {
      const std::optional<bool> less = is_less(have, want);
      if (less && *less && i < in.size()) {
        group.from.push_back(in[i]);
        have = have * from[in[i++]];
      } else if (less && o < out.size()) {
        group.to.push_back(out[o]);
        want = want * to[out[o++]];
      } else {
        for (; i < in.size(); ++i) group.from.push_back(in[i]);
        for (; o < out.size(); ++o) group.to.push_back(out[o]);
        break;
      }
    }
    groups.push_back(std::move(group));
  }
  if (i < in.size() || o < out.size()) return std::nullopt;
  return groups;
}

bool only_unit_dims_change(const std::vector<dim>& from, const std::vector<dim>& to) {
  auto in = other_than_one(from), out = other_than_one(to);
  return std::equal(in.begin(), in.end(), out.begin(), out.end(),
                    [&](std::size_t a, std::size_t b) { return from[a] == to[b]; });
}

}  // namespace kiln
