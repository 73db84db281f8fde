// Passes the finished sums of a micro tile to the fusion's epilogue, which stores them to every output.
#pragma once

#include <functional>

#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/cpu/contraction/tile.hpp"

namespace kiln::cpu {

using namespace codegen;

// The position of a tile in the result.
struct tile_place {
  // Only this many of the tile's rows are stored.
  Value valid_rows = {};
  bool rows_always_full = false;
  // Index of the first column along the last axis.
  Value column = {};
  // Number of columns in the last panel; 0 if every panel is full.
  std::int64_t last_columns = 0;
  // True if this tile is in the last panel.
  Value in_last_panel = {};
  // Returns the indices of a row of the tile along all axes except the last.
  std::function<values(Value row)> locate = {};
};

class tile_writer {
 public:
  // Create it in the open stage in front of the loops, because it allocates stack memory.
  tile_writer(kernel_emitter& emitter, const tile_shape& shape, element_type accumulation);
  void write(const values& sums, const tile_place& place);
  // Stack memory for the sums of a tile, [row, column], and write() for sums that were stored there.
  Value memory() const { return memory_; }
  void write_memory(const tile_place& place);
  // Prefetches what write() will read and write at this place. Call it before the sums are computed.
  void fetch(const tile_place& place);

 private:
  void write_inline(const values& sums, const tile_place& place);
  void write_from_memory(const values& sums, const tile_place& place);
  void store(evaluator& ev, Value sum, const values& where);
  void fetch(const buffer& b, const tile_place& place, bool written);
  kernel_emitter& e;
  tile_shape shape_;
  element_type accumulation_;
  // True if the epilogue is cheap enough to be emitted once per vector of the tile.
  bool light_;
  Value memory_;
};

// Converts a sum to the compute type of the anchor's result.
Value to_result(code_builder& code, Value sum, element_type accumulation, element_type result);

// Returns roughly how many machine instructions the epilogue takes per element.
std::int64_t epilogue_cost(const kernel_emitter& e);
// Upper bound of epilogue_cost for epilogues that are emitted once per vector of a tile.
inline constexpr std::int64_t light_epilogue = 6;

}  // namespace kiln::cpu
