// 4-bit weights as the right factor of a product. In the graph they have this form:
//   constant i4 or u4 [n, k/g, g] → convert → (− zero points) → × scales [n, k/g, 1] → reshape [1..., n, k] → dot with
//   transpose_b
// The elements along k are adjacent, two to a byte, and kernel formation can make the whole chain the prologue of the
// product.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/module.hpp"

namespace kiln {

struct int4_matrix {
  // n, k, and the number of neighbours along k that share a scale; group divides depth.
  std::int64_t rows = 0, depth = 0, group = 0;
  literal elements = {};                    // i4 or u4 [rows, depth]
  literal scales = {};                      // a float [rows, depth / group]
  std::optional<literal> zero_points = {};  // the same type and dims as the scales
};

// Inserts the matrix before `before`. `dims` are [1..., rows, depth]. Scales and zero points must have the element type
// of the product.
value add_int4_matrix(module& m, instruction* before, const int4_matrix& matrix, const std::vector<dim>& dims);

// Returns whether v is computed from constants only, by conversion, broadcasts, reshapes, products, sums and
// differences, with 4 bits of constant data for each of its elements.
bool is_int4_matrix(value v);

// Constants of 4 bits with fewer elements are converted ahead of time, because packing is not worth it.
inline constexpr std::int64_t fewest_packed_elements = 512;
bool stays_packed(const operation& op, const shape& operand);

}  // namespace kiln
