// The matrix product used by dot and the convolutions: rows × depth times depth × columns. The second operand is never
// materialized as a whole: `pack` lays out one panel of columns at a time, so a convolution does not have to write out
// its windows. with_sums_of chooses the accumulator type.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/element_type.hpp"

namespace kiln::reference {

inline constexpr std::int64_t panel_columns = 32;

// sums[r][c] = Σ_k a[r * depth + k] * panel[k * panel_columns + c] for Rows rows. Fixed trip counts let the compiler
// vectorize the loops.
template <int Rows, class Sum>
void multiply_panel(const Sum* __restrict a, const Sum* __restrict panel, std::int64_t depth,
                    Sum (*__restrict sums)[panel_columns]) {
  for (int r = 0; r < Rows; ++r) std::fill_n(sums[r], panel_columns, Sum(0));
  std::int64_t k = 0;
  for (; k + 2 <= depth; k += 2) {
    const Sum* p = panel + k * panel_columns;
    for (std::int64_t c = 0; c < panel_columns; ++c)
      for (int r = 0; r < Rows; ++r)
        sums[r][c] += a[r * depth + k] * p[c] + a[r * depth + k + 1] * p[panel_columns + c];
  }
  for (; k < depth; ++k)
    for (std::int64_t c = 0; c < panel_columns; ++c)
      for (int r = 0; r < Rows; ++r) sums[r][c] += a[r * depth + k] * panel[k * panel_columns + c];
}

inline std::int64_t panel_count(std::int64_t columns) { return (columns + panel_columns - 1) / panel_columns; }

// Computes the columns of panel `index`. pack(panel, first_column, columns) writes panel[k * panel_columns + c] for c <
// columns; store(row, first_column, columns, sums) receives the results of one row. `panel` is scratch, reused between
// calls.
template <class Sum, class Pack, class Store>
void panel_product(const Sum* a, std::int64_t rows, std::int64_t depth, std::int64_t columns, std::int64_t index,
                   std::vector<Sum>& panel, const Pack& pack, const Store& store) {
  constexpr int block = 4;
  std::int64_t first = index * panel_columns, width = std::min(panel_columns, columns - first);
  panel.assign(static_cast<std::size_t>(depth * panel_columns), Sum(0));
  pack(panel.data(), first, width);
  alignas(64) Sum sums[block][panel_columns];
  std::int64_t row = 0;
  for (; row + block <= rows; row += block) {
    multiply_panel<block>(a + row * depth, panel.data(), depth, sums);
    for (int r = 0; r < block; ++r) store(row + r, first, width, sums[r]);
  }
  for (; row < rows; ++row) {
    multiply_panel<1>(a + row * depth, panel.data(), depth, sums);
    store(row, first, width, sums[0]);
  }
}

// Calls f(Sum()) with the accumulator type for products of `operand` elements and a result of type `result`. That is
// double for floats and for 8-bit integers (where it is exact), otherwise an integer modulo a power of two that is at
// least as wide as the result.
template <class F>
auto with_sums_of(element_type operand, element_type result, const F& f) {
  if (is_float(result) || storage_bits(operand) == 8) return f(double());
  if (storage_bits(result) <= 32) return f(std::uint32_t());
  return f(std::uint64_t());
}

}  // namespace kiln::reference
