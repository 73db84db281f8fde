// The tile of a contraction in the matrix registers of AMX (Sapphire Rapids and later): one or two blocks of up to 16
// rows times up to four blocks of 16 columns. One instruction adds the products of 16 steps of a block of rows and a
// block of columns, of factors in lanes of neighbours (lane_product.hpp). Sums of bf16 differ from those of vectors
// only in their order: the products of lower and of higher neighbours are summed apart.
//
// The registers and their configuration belong to the processor, not to the function: release() must be called before
// the stage ends, and calls must not come between clear() and store().
#pragma once

#include <optional>
#include <vector>

#include "mlir_bridge/codegen/tuning_space.hpp"
#include "mlir_bridge/cpu/contraction/tile.hpp"

namespace kiln::cpu {

using namespace codegen;

// Rows, columns and steps of a block.
inline constexpr std::int64_t matrix_rows = 16, matrix_lanes = 16, matrix_steps = 16;

// Returns the tile for lines of `rows` rows; nullopt if the target has no matrix registers for these factors, or if
// blocks would be mostly empty. The number of steps must then be rounded up by matrix_steps_of(). The configuration's
// "matrix" = 0 asks for vectors.
std::optional<tile_shape> choose_matrix_tile(const kernel_emitter& e, const std::optional<lane_products>& by_lane,
                                             std::int64_t rows, std::int64_t columns, std::int64_t steps);
std::int64_t matrix_steps_of(std::int64_t steps);
// Returns `by_lane` if vectors or matrix registers pay for lines of `rows` rows and sums of `depth` products.
std::optional<lane_products> worthwhile(const kernel_emitter& e, const std::optional<lane_products>& by_lane,
                                        std::int64_t rows, std::int64_t columns, std::int64_t depth);
// Adds the candidate with matrix registers to those with vectors.
std::vector<candidate> with_matrix_tile(std::vector<candidate> vectors);

class matrix_tile {
 public:
  // Configures the registers for whole tiles. Create it in the open stage in front of the loops, because it allocates
  // stack memory.
  matrix_tile(kernel_emitter& e, const lane_products& products, const tile_shape& shape);

  // From use_rows() to use_all_rows(), the tile is only its first `rows` rows, at least one.
  void use_rows(Value rows);
  void use_all_rows();
  void clear();
  // Adds the products of matrix_steps steps. Rows are `left_pitch` bytes apart, steps of the columns `right_pitch`.
  void add(Value left, std::int64_t left_pitch, Value right, std::int64_t right_pitch);
  // Stores the sums of the rows in use: [row, column], as i32 or f32.
  void store(Value sums);
  void release();

 private:
  std::int64_t blocks() const { return (shape_.rows + matrix_rows - 1) / matrix_rows; }
  Value register_of(std::int64_t number);
  Value sums_of(std::int64_t block, std::int64_t column) { return register_of(block * shape_.vectors + column); }
  void set_rows(std::int64_t block, Value rows);
  void configure(Value rows);
  // The address of a block's first row, in memory with rows `pitch` bytes apart.
  Value block_at(Value pointer, std::int64_t block, std::int64_t pitch);

  code_builder& code;
  lane_products products_;
  tile_shape shape_;
  Value configuration_;
  // Set where the second block may have no rows: it then repeats the first one's, whose sums nobody reads.
  Value second_exists_;
  Value partial_;  // whether the tile has fewer rows than others
};

}  // namespace kiln::cpu
