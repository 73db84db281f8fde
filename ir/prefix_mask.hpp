// Recognizes a boolean mask that compares its last index with a number per row, as causal masks with data-dependent
// positions do: iota <= limit. Each row of such a mask is true up to a point and false from there on.
#pragma once

#include <cstddef>
#include <optional>

#include "ir/instruction.hpp"
#include "ir/ops/elementwise.hpp"
#include "ir/ops/movement.hpp"

namespace kiln {

struct prefix_mask {
  // An integer tensor whose last dim is 1 and whose other dims broadcast to the mask's (numpy's rule).
  value limit;
  // Element j of a row is true if j <= limit; otherwise if j < limit.
  bool inclusive = false;
  // The indices and the wide limit, which the comparison reads.
  value columns, rows;
};

namespace detail {

// Returns true if the elements of v are their indices along its last axis.
inline bool counts_columns(value v) {
  const dim last = v.type().rank() == 0 ? dim(1) : v.type().dims.back();
  while (v.producer->op().is<broadcast>()) v = v.producer->inputs()[0];
  const auto* i = v.producer->op().get_if<iota>();
  return i && !i->dims.empty() && static_cast<std::size_t>(i->axis) + 1 == i->dims.size() && i->dims.back() == last;
}

}  // namespace detail

// nullopt for any other mask. The comparison must be less or less_equal, with the indices on the left.
inline std::optional<prefix_mask> find_prefix_mask(value mask) {
  const auto* e = mask.producer->op().get_if<elementwise>();
  if (!e || mask.type().rank() == 0 ||
      (e->function != scalar_function::less && e->function != scalar_function::less_equal))
    return std::nullopt;
  const value columns = mask.producer->inputs()[0], rows = mask.producer->inputs()[1];
  const element_type type = rows.type().type;
  if ((type != element_type::i32 && type != element_type::i64) || !detail::counts_columns(columns)) return std::nullopt;
  value limit = rows;
  while (limit.producer->op().is<broadcast>() && !(limit.type().rank() > 0 && limit.type().dims.back() == dim(1)))
    limit = limit.producer->inputs()[0];
  if (limit.type().rank() == 0 || !(limit.type().dims.back() == dim(1))) return std::nullopt;
  return prefix_mask{limit, e->function == scalar_function::less_equal, columns, rows};
}

}  // namespace kiln
