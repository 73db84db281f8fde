// What code generation knows of a target: one row of data. The rows are in target_table.cpp; a new target is a new row.
#pragma once

#include <cstdint>
#include <string>

#include "ir/enum_names.hpp"

namespace kiln {

enum class target_family : std::uint8_t { cpu, amdgpu, nvidia };
template <>
struct enum_table<target_family> {
  static constexpr std::array<std::string_view, 3> names{"cpu", "amdgpu", "nvidia"};
};

// How a GPU multiplies matrices: the key into the table of instructions (mlir_bridge/gpu/matrix_instruction.hpp). One
// name for each set of instructions; what a set lacks (f32, int8) is done with multiply-add on the vector unit.
enum class matrix_unit : std::uint8_t {
  none,
  mfma_gfx908,
  mfma_gfx90a,
  mfma_gfx942,
  mfma_gfx950,
  wmma_gfx11,
  wmma_gfx12,
  mma_sm75,
  mma_sync,
  wgmma
};
template <>
struct enum_table<matrix_unit> {
  static constexpr std::array<std::string_view, 10> names{
      "none",         "mfma (gfx908)", "mfma (gfx90a)",    "mfma (gfx942)", "mfma (gfx950)",
      "wmma (gfx11)", "wmma (gfx12)",  "mma.sync (sm_75)", "mma.sync",      "wgmma"};
};

// Packed dot products on the vector unit, beside or instead of a matrix unit.
enum class dot_unit : std::uint8_t { none, f16, f16_and_i8 };
template <>
struct enum_table<dot_unit> {
  static constexpr std::array<std::string_view, 3> names{"none", "f16", "f16 and i8"};
};

struct gpu_row {
  int wave = 0;                // threads of a wave (warp) in our code; RDNA hardware also has waves of 64
  std::int64_t lds_bytes = 0;  // maximum shared memory of one workgroup
  int registers = 256;         // 32-bit vector registers that one thread can have, accumulation registers included
  int register_file = 0;       // 32-bit vector registers of one compute unit
  int max_threads = 1024;      // of a workgroup
  int compute_units = 0;       // of a typical device of this kind: what default configurations count on
  matrix_unit matrix = matrix_unit::none;
  dot_unit dots = dot_unit::none;
  bool async_copy = false;        // global → shared memory without registers (cp.async)
  bool tensor_copy = false;       // the bulk tensor copy engine (TMA)
  bool dependent_launch = false;  // programmatic dependent launch (griddepcontrol)
};

struct target_row {
  std::string name;  // "x86-64-v4"
  target_family family = target_family::cpu;
  std::string triple;         // LLVM's
  std::string processor;      // LLVM's -mcpu
  std::string features;       // LLVM's -mattr, "+avx512f,+..."
  int vector_bits = 256;      // of one vector register; of the widest memory access of one thread on a GPU
  int vector_registers = 16;  // architectural
  std::int64_t l1_bytes = 32 << 10, l2_bytes = 1 << 20;  // data caches that blocking may count on
  gpu_row gpu = {};                                      // where family is not cpu
  // For people, not for code generation: what the target is sold as, and where the numbers of the row come from.
  std::string products = {}, source = {};
};

}  // namespace kiln
