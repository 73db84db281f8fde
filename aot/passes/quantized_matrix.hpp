// Weights of 4 or 8 bits as the right factor of a product. In the graph they have this form:
//   constant i4, u4, i8 or u8 [n, k/g, g] → convert → (− zero points) → × scales [n, k/g, 1] → reshape [1..., n, k] →
//   dot with transpose_b
// The elements along k are adjacent, and kernel formation can make the whole chain the prologue of the product.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/module.hpp"

namespace kiln {

struct quantized_matrix {
  // n, k, and the number of neighbours along k that share a scale; group divides depth.
  std::int64_t rows = 0, depth = 0, group = 0;
  literal elements = {};                    // of 4 or 8 bits [rows, depth]
  literal scales = {};                      // a float [rows, depth / group]
  std::optional<literal> zero_points = {};  // the same type and dims as the scales
};

// Inserts the matrix before `before`. `dims` are [1..., rows, depth]. Scales and zero points must have the element type
// of the product.
value add_quantized_matrix(module& m, instruction* before, const quantized_matrix& matrix,
                           const std::vector<dim>& dims);

// Returns the matrix that v [rows, depth] is computed from in the form above, or nullopt. Scales and zero points are
// constants, one for each row and group or one for all.
std::optional<quantized_matrix> read_quantized_matrix(value v);

// Puts the rows of matrices with the same depth, groups, types and presence of zero points one below the other.
quantized_matrix joined_rows(const std::vector<quantized_matrix>& matrices);

// Returns whether v is computed from constants only, by conversion, broadcasts, reshapes, products, sums and
// differences, with 4 or 8 bits of constant data for each of its elements.
bool is_quantized_matrix(value v);

// Constants with fewer elements are converted ahead of time, because reading fewer bytes is not worth the conversion.
inline constexpr std::int64_t fewest_packed_elements = 512;
// Whether a constant of this type may be the elements of a quantized matrix.
bool can_stay_packed(const shape& constant);

// Whether constant folding must leave this conversion to the product that reads its result. Bytes, which other
// operations read as well, stay only where the matrix has the form above.
bool stays_packed(const module& m, const instruction& conversion);

}  // namespace kiln
