// The matrix instructions of all GPUs as data: shape, types, LLVM's intrinsic, and which elements each lane holds. A
// new instruction is a row. Lane maps were verified in the emulator and against AMD's matrix instruction calculator and
// the PTX ISA ("Matrix fragments for mma.m16n8k16").
//
// D[i][j] = C[i][j] + sum over k of A[i][k] * B[k][j]. Both factors are kept in shared memory with k innermost, A as
// rows i and B as rows j, cut into chunks of 16 bytes along k. Only which k meets which k is observable, so a lane
// reads whole chunks and consecutive instructions use consecutive pieces of them:
//   * lane l reads row (l / row_divisor) % row_modulus of its tile, and rows + row_step more for each further part of
//   A;
//   * its chunk within a group of `chunks` chunks is (l / chunk_divisor) % chunks, or, where `whole_row`, it reads all
//   of them (gfx11);
//   * one instruction takes `bytes` bytes of k from the lane, so a chunk feeds 16 / bytes instructions (or bytes / 16
//   chunks feed one).
// Result register r of lane l is D[i][j] with
//   i = row_of_register[r] + row_scale * (l / row_lanes),  j = column_of_register[r] + column_scale * (l %
//   column_lanes).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/element_type.hpp"
#include "mlir_bridge/targets/target_row.hpp"

namespace kiln::gpu {

struct factor_map {
  int row_divisor = 1, row_modulus = 1;
  // The lane's data consists of `parts` pieces that are `part_rows` rows apart.
  int parts = 1, part_rows = 0;
  // Layout of the lanes that share a group of chunks.
  int chunk_divisor = 1, chunks = 1;
  bool whole_row = false;  // every lane reads all chunks of the group
};

struct result_map {
  int registers = 4;
  std::array<std::int8_t, 16> row_of_register{}, column_of_register{};
  int row_scale = 1, row_lanes = 1;
  int column_scale = 1, column_lanes = 1;
};

struct matrix_instruction {
  matrix_unit unit;
  // f16, bf16, i8 or f32. f32 is exact on MFMA and rounded to tf32 on mma.sync.
  element_type factor;
  // Rounds its factors to fewer bits than their type has (tf32). Used only if the user allows it.
  bool reduced = false;
  int m, n, k;
  // Bytes along k that a lane contributes to one instruction, for each part.
  int bytes;
  // Name of LLVM's intrinsic without the prefix "llvm.".
  std::string_view intrinsic;
  factor_map a, b;
  result_map d;
};

// Returns the whole table.
std::span<const matrix_instruction> matrix_instructions();

// Returns the instructions of a unit for factors of a type. The best one for large tiles comes first.
std::vector<const matrix_instruction*> find_matrix_instructions(matrix_unit unit, element_type factor,
                                                                bool allow_reduced);

}  // namespace kiln::gpu
