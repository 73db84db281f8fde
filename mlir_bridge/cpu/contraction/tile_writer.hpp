// Hands the finished sums of a micro tile to the fusion's epilogue, which stores them to every output.
#pragma once

#include <functional>

#include "mlir_bridge/codegen/kernel_emitter.hpp"
#include "mlir_bridge/cpu/contraction/tile.hpp"

namespace kiln::cpu {

using namespace codegen;

// Where a tile lies in the result.
struct tile_place {
  Value valid_rows = {};  // of the tile's rows; only these are stored
  bool rows_always_full = false;
  Value column = {};              // index of the first column along the last axis
  std::int64_t last_columns = 0;  // 0: the columns are always all there; else how many the last panel has,
  Value in_last_panel = {};       // and whether this is it
  std::function<values(Value row)> locate = {};  // indices of a row of the tile along all axes but the last
};

class tile_writer {
 public:
  // To be made in the open stage, before its loops: takes room on the stack.
  tile_writer(kernel_emitter& emitter, const tile_shape& shape, element_type accumulation);
  void write(const values& sums, const tile_place& place);
  // Fetches what write() will read and write there, while the sums are being computed.
  void fetch(const tile_place& place);

 private:
  void write_inline(const values& sums, const tile_place& place);
  void write_from_memory(const values& sums, const tile_place& place);
  void store(Value sum, const values& where);
  void fetch(const buffer& b, const tile_place& place, bool written);
  kernel_emitter& e;
  tile_shape shape_;
  element_type accumulation_;
  bool light_;  // an epilogue small enough to be repeated for every vector of the tile
  Value memory_;
};

// Sums as the value that the anchor has: its element type's compute type.
Value to_result(code_builder& code, Value sum, element_type accumulation, element_type result);

// The fusion's work for each element of the result, in instructions of machine code, roughly.
std::int64_t epilogue_cost(const kernel_emitter& e);
// What is small enough to be repeated for every vector of a tile.
inline constexpr std::int64_t light_epilogue = 6;

}  // namespace kiln::cpu
