// B of an f32 product as a consumer warp of a divided tile reads it (wgmma_tile::divided): f32 in shared memory becomes
// words of bf16 parts in registers, the rows of a matrix instruction. So the parts of weights take no memory, and fewer
// bytes are copied than those of three parts. Internal to mlir_bridge/gpu.
#pragma once

#include "mlir_bridge/gpu/wgmma/hopper_code.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_tile.hpp"

namespace kiln::gpu {

// The copy engine has written a block of 64 elements of k in boxes of rows of 128 bytes with its 128-byte swizzle: if k
// is inner, two boxes of 32 elements by the tile's columns, otherwise boxes of 32 columns by 64 elements.
class divided_weights {
 public:
  divided_weights(code_builder& code, hopper_code& hopper, const wgmma_tile& tile, bool k_inner)
      : code_(code), hopper_(hopper), tile_(tile), k_inner_(k_inner) {}

  // Returns the sums of a block for 64 columns from `first_column` of the tile on, to be read after
  // hopper_code::finish(). `weights` (addrspace 3) and `rows` (i32) are where the block begins: the columns of B, and
  // the parts of the rows of A. The two consumers multiply one after the other: turns.
  values multiply(const wgmma_shape& shape, Value weights, Value rows, Value first_column, Value in_group,
                  Value warpgroup) const;

  // Before the first block: the first consumer's turn begins. After the last one: the consumers' turns end.
  void begin_turns(Value warpgroup) const;
  void end_turns(Value warpgroup) const;
  // After the blocks of a tile that the consumers took in turn: of an odd number (`count`, i32) the second one has none
  // in its last turn.
  void end_blocks(Value warpgroup, Value count) const;

 private:
  // Pairs of elements along k, in the order of hopper_code::multiply_registers.
  values load(Value weights, Value first_column, Value in_group) const;
  values load_rows(Value weights, Value first_column, Value in_group) const;
  values load_columns(Value weights, Value first_column, Value in_group) const;
  void await_turn(Value warpgroup) const;
  void pass_turn(Value warpgroup) const;

  code_builder& code_;
  hopper_code& hopper_;
  const wgmma_tile& tile_;
  bool k_inner_;
};

}  // namespace kiln::gpu
