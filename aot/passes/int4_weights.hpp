// Weights of 4 bits as the right factor of a product, and the form in which they stand in the graph:
//
//   constant i4 or u4 [n, k/g, g] → convert → (− zero points) → × scales [n, k/g, 1] → reshape [1..., n, k] → dot with
//   transpose_b
//
// so that the elements that are multiplied lie side by side, two to a byte, and kernel formation can make all of it the
// prologue of the product.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/module.hpp"

namespace kiln {

struct int4_matrix {
  std::int64_t rows = 0, depth = 0,
               group = 0;                   // n, k, and the neighbours along k that share a scale; group divides depth
  literal elements = {};                    // i4 or u4 [rows, depth]
  literal scales = {};                      // a float [rows, depth / group]
  std::optional<literal> zero_points = {};  // the same type and dims as the scales
};

// Puts the matrix in front of `before`; `dims` are [1..., rows, depth]. Scales and zero points must be of the type that
// is multiplied in.
value add_int4_matrix(module& m, instruction* before, const int4_matrix& matrix, const std::vector<dim>& dims);

// Whether v is made of constants alone, by conversion, broadcasts, reshapes, products and differences, from 4 bits for
// each of its elements.
bool is_int4_matrix(value v);

// Below this, packing and unpacking is not worth it: constants of 4 bits may be converted ahead of time.
inline constexpr std::int64_t fewest_packed_elements = 512;
bool stays_packed(const operation& op, const shape& operand);

}  // namespace kiln
