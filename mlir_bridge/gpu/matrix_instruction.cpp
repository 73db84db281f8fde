#include "mlir_bridge/gpu/matrix_instruction.hpp"

#include <algorithm>

namespace kiln::gpu {

namespace {

using enum element_type;
using u = matrix_unit;

constexpr std::array<std::int8_t, 16> counting{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
constexpr std::array<std::int8_t, 16> none{};

// --- AMD
constexpr factor_map rows16{1, 16, 1, 0, 16, 4};  // MFMA with 16 rows: four groups of 16 lanes along k
constexpr factor_map rows32{1, 32, 1, 0, 32, 2};  // with 32 rows: two groups of 32
// Lanes 16 to 31 repeat 0 to 15; a lane holds all 16 values of k.
constexpr factor_map rows_gfx11{1, 16, 1, 0, 1, 2, true};
constexpr factor_map rows_gfx11_i8{1, 16, 1, 0, 1, 1, true};
constexpr factor_map rows_gfx12{1, 16, 1, 0, 16, 2};
constexpr result_map mfma16{4, counting, none, 4, 16, 1, 16};
constexpr result_map mfma32{16, {0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27}, none, 4, 32, 1, 32};
constexpr result_map wmma11{8, {0, 2, 4, 6, 8, 10, 12, 14}, none, 1, 16, 1, 16};
constexpr result_map wmma12{8, counting, none, 8, 16, 1, 16};

// --- NVIDIA: lane = 4 * row + a quarter of k
constexpr factor_map mma_a{4, 8, 2, 8, 1, 4};
constexpr factor_map mma_b{4, 8, 1, 0, 1, 4};
constexpr result_map mma_d{4, {0, 0, 8, 8}, {0, 1, 0, 1}, 1, 4, 2, 4};
constexpr result_map mma_d8{2, none, {0, 1}, 1, 4, 2, 4};  // with 8 rows

constexpr auto table = std::to_array<matrix_instruction>({
    // unit, factor, reduced, m, n, k, bytes of a lane, intrinsic, A, B, D
    {u::mfma_gfx908, f16, false, 32, 32, 8, 8, "amdgcn.mfma.f32.32x32x8f16", rows32, rows32, mfma32},
    {u::mfma_gfx908, f16, false, 16, 16, 16, 8, "amdgcn.mfma.f32.16x16x16f16", rows16, rows16, mfma16},
    {u::mfma_gfx908, bf16, false, 32, 32, 4, 4, "amdgcn.mfma.f32.32x32x4bf16", rows32, rows32, mfma32},
    {u::mfma_gfx908, bf16, false, 16, 16, 8, 4, "amdgcn.mfma.f32.16x16x8bf16", rows16, rows16, mfma16},
    {u::mfma_gfx908, f32, false, 32, 32, 2, 4, "amdgcn.mfma.f32.32x32x2f32", rows32, rows32, mfma32},
    {u::mfma_gfx908, f32, false, 16, 16, 4, 4, "amdgcn.mfma.f32.16x16x4f32", rows16, rows16, mfma16},
    {u::mfma_gfx908, i8, false, 32, 32, 8, 4, "amdgcn.mfma.i32.32x32x8i8", rows32, rows32, mfma32},
    {u::mfma_gfx908, i8, false, 16, 16, 16, 4, "amdgcn.mfma.i32.16x16x16i8", rows16, rows16, mfma16},

    {u::mfma_gfx90a, f16, false, 32, 32, 8, 8, "amdgcn.mfma.f32.32x32x8f16", rows32, rows32, mfma32},
    {u::mfma_gfx90a, f16, false, 16, 16, 16, 8, "amdgcn.mfma.f32.16x16x16f16", rows16, rows16, mfma16},
    {u::mfma_gfx90a, bf16, false, 32, 32, 8, 8, "amdgcn.mfma.f32.32x32x8bf16.1k", rows32, rows32, mfma32},
    {u::mfma_gfx90a, bf16, false, 16, 16, 16, 8, "amdgcn.mfma.f32.16x16x16bf16.1k", rows16, rows16, mfma16},
    {u::mfma_gfx90a, f32, false, 32, 32, 2, 4, "amdgcn.mfma.f32.32x32x2f32", rows32, rows32, mfma32},
    {u::mfma_gfx90a, f32, false, 16, 16, 4, 4, "amdgcn.mfma.f32.16x16x4f32", rows16, rows16, mfma16},
    {u::mfma_gfx90a, i8, false, 32, 32, 8, 4, "amdgcn.mfma.i32.32x32x8i8", rows32, rows32, mfma32},
    {u::mfma_gfx90a, i8, false, 16, 16, 16, 4, "amdgcn.mfma.i32.16x16x16i8", rows16, rows16, mfma16},

    {u::mfma_gfx942, f16, false, 32, 32, 8, 8, "amdgcn.mfma.f32.32x32x8f16", rows32, rows32, mfma32},
    {u::mfma_gfx942, f16, false, 16, 16, 16, 8, "amdgcn.mfma.f32.16x16x16f16", rows16, rows16, mfma16},
    {u::mfma_gfx942, bf16, false, 32, 32, 8, 8, "amdgcn.mfma.f32.32x32x8bf16.1k", rows32, rows32, mfma32},
    {u::mfma_gfx942, bf16, false, 16, 16, 16, 8, "amdgcn.mfma.f32.16x16x16bf16.1k", rows16, rows16, mfma16},
    {u::mfma_gfx942, f32, false, 32, 32, 2, 4, "amdgcn.mfma.f32.32x32x2f32", rows32, rows32, mfma32},
    {u::mfma_gfx942, f32, false, 16, 16, 4, 4, "amdgcn.mfma.f32.16x16x4f32", rows16, rows16, mfma16},
    {u::mfma_gfx942, i8, false, 32, 32, 16, 8, "amdgcn.mfma.i32.32x32x16.i8", rows32, rows32, mfma32},
    {u::mfma_gfx942, i8, false, 16, 16, 32, 8, "amdgcn.mfma.i32.16x16x32.i8", rows16, rows16, mfma16},

    {u::mfma_gfx950, f16, false, 32, 32, 16, 16, "amdgcn.mfma.f32.32x32x16.f16", rows32, rows32, mfma32},
    {u::mfma_gfx950, f16, false, 16, 16, 32, 16, "amdgcn.mfma.f32.16x16x32.f16", rows16, rows16, mfma16},
    {u::mfma_gfx950, bf16, false, 32, 32, 16, 16, "amdgcn.mfma.f32.32x32x16.bf16", rows32, rows32, mfma32},
    {u::mfma_gfx950, bf16, false, 16, 16, 32, 16, "amdgcn.mfma.f32.16x16x32.bf16", rows16, rows16, mfma16},
    {u::mfma_gfx950, f32, false, 32, 32, 2, 4, "amdgcn.mfma.f32.32x32x2f32", rows32, rows32, mfma32},
    {u::mfma_gfx950, f32, false, 16, 16, 4, 4, "amdgcn.mfma.f32.16x16x4f32", rows16, rows16, mfma16},
    {u::mfma_gfx950, i8, false, 32, 32, 32, 16, "amdgcn.mfma.i32.32x32x32.i8", rows32, rows32, mfma32},
    {u::mfma_gfx950, i8, false, 16, 16, 64, 16, "amdgcn.mfma.i32.16x16x64.i8", rows16, rows16, mfma16},

    {u::wmma_gfx11, f16, false, 16, 16, 16, 32, "amdgcn.wmma.f32.16x16x16.f16", rows_gfx11, rows_gfx11, wmma11},
    {u::wmma_gfx11, bf16, false, 16, 16, 16, 32, "amdgcn.wmma.f32.16x16x16.bf16", rows_gfx11, rows_gfx11, wmma11},
    {u::wmma_gfx11, i8, false, 16, 16, 16, 16, "amdgcn.wmma.i32.16x16x16.iu8", rows_gfx11_i8, rows_gfx11_i8, wmma11},
    {u::wmma_gfx12, f16, false, 16, 16, 16, 16, "amdgcn.wmma.f32.16x16x16.f16", rows_gfx12, rows_gfx12, wmma12},
    {u::wmma_gfx12, bf16, false, 16, 16, 16, 16, "amdgcn.wmma.f32.16x16x16.bf16", rows_gfx12, rows_gfx12, wmma12},
    {u::wmma_gfx12, i8, false, 16, 16, 16, 8, "amdgcn.wmma.i32.16x16x16.iu8", rows_gfx12, rows_gfx12, wmma12},

    {u::mma_sm75, f16, false, 16, 8, 8, 4, "nvvm.mma.m16n8k8.row.col.f32.f32", mma_a, mma_b, mma_d},
    {u::mma_sm75, i8, false, 8, 8, 16, 4, "nvvm.mma.m8n8k16.row.col.s8", mma_b, mma_b, mma_d8},

    {u::mma_sync, f16, false, 16, 8, 16, 8, "nvvm.mma.m16n8k16.row.col.f32.f32", mma_a, mma_b, mma_d},
    {u::mma_sync, bf16, false, 16, 8, 16, 8, "nvvm.mma.m16n8k16.row.col.bf16", mma_a, mma_b, mma_d},
    {u::mma_sync, f32, true, 16, 8, 8, 8, "nvvm.mma.m16n8k8.row.col.tf32", mma_a, mma_b, mma_d},
    {u::mma_sync, i8, false, 16, 8, 32, 8, "nvvm.mma.m16n8k32.row.col.s8", mma_a, mma_b, mma_d},
});

}  // namespace

std::span<const matrix_instruction> matrix_instructions() { return table; }

std::vector<const matrix_instruction*> find_matrix_instructions(matrix_unit unit, element_type factor,
                                                                bool allow_reduced) {
  // sm_90 has both; this table describes mma.sync.
  if (unit == u::wgmma) unit = u::mma_sync;
  std::vector<const matrix_instruction*> found;
  for (const matrix_instruction& row : table)
    if (row.unit == unit && row.factor == factor && (allow_reduced || !row.reduced)) found.push_back(&row);
  return found;
}

}  // namespace kiln::gpu
