#include "mlir_bridge/targets/target_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kiln {
namespace {

constexpr const char* amd = "amdgcn-amd-amdhsa";
constexpr const char* nvidia = "nvptx64-nvidia-cuda";

// Sizes are from the vendors' architecture documents: LDS per workgroup, vector registers per thread and per compute
// unit, L1 and L2 of the device, compute units of its largest common product.
const std::array<target_row, 14>& table() {
  using enum matrix_unit;
  constexpr auto cpu = target_family::cpu, gcn = target_family::amdgpu, ptx = target_family::nvidia;
  constexpr std::int64_t kib = 1 << 10, mib = 1 << 20;
  static const std::array<target_row, 14> rows{{
      // name, family, triple, processor, features, vector bits, vector registers, L1 and L2 data cache bytes,
      //   {wave, LDS, registers of a thread and of a unit, most threads, units, matrix unit, dot unit, asynchronous
      //   copy, tensor copy}
      // clang-format off
      {"x86-64-v3", cpu, cpu_triple, "x86-64-v3", "", 256, 16, 32 * kib, 256 * kib},
      {"x86-64-v4", cpu, cpu_triple, "x86-64-v4", "", 512, 32, 32 * kib, 1 * mib},
      {"gfx906", gcn, amd, "gfx906", "", 128, 256, 16 * kib, 4 * mib,
       {64, 64 * kib, 256, 65536, 1024, 60, none, dot_unit::f16_and_i8}},
      {"gfx90a", gcn, amd, "gfx90a", "", 128, 512, 16 * kib, 8 * mib,
       {64, 64 * kib, 512, 131072, 1024, 104, mfma_gfx90a, dot_unit::f16_and_i8}},
      {"gfx942", gcn, amd, "gfx942", "", 128, 512, 32 * kib, 4 * mib,
       {64, 64 * kib, 512, 131072, 1024, 304, mfma_gfx942, dot_unit::f16_and_i8}},
      {"gfx950", gcn, amd, "gfx950", "", 128, 512, 32 * kib, 4 * mib,
       {64, 160 * kib, 512, 131072, 1024, 256, mfma_gfx950, dot_unit::f16_and_i8}},
      {"gfx1030", gcn, amd, "gfx1030", "", 128, 256, 16 * kib, 4 * mib,
       {32, 64 * kib, 256, 65536, 1024, 72, none, dot_unit::f16_and_i8}},
      {"gfx1100", gcn, amd, "gfx1100", "", 128, 256, 32 * kib, 6 * mib,
       {32, 64 * kib, 256, 98304, 1024, 96, wmma_gfx11, dot_unit::f16_and_i8}},
      {"gfx1151", gcn, amd, "gfx1151", "", 128, 256, 32 * kib, 2 * mib,
       {32, 64 * kib, 256, 98304, 1024, 40, wmma_gfx11, dot_unit::f16_and_i8}},
      {"gfx1201", gcn, amd, "gfx1201", "", 128, 256, 32 * kib, 8 * mib,
       {32, 64 * kib, 256, 98304, 1024, 64, wmma_gfx12, dot_unit::f16_and_i8}},
      {"sm_80", ptx, nvidia, "sm_80", "+ptx80", 128, 255, 192 * kib, 40 * mib,
       {32, 163 * kib, 255, 65536, 1024, 108, mma_sync, dot_unit::none, true}},
      {"sm_86", ptx, nvidia, "sm_86", "+ptx80", 128, 255, 128 * kib, 6 * mib,
       {32, 99 * kib, 255, 65536, 1024, 84, mma_sync, dot_unit::none, true}},
      {"sm_89", ptx, nvidia, "sm_89", "+ptx80", 128, 255, 128 * kib, 72 * mib,
       {32, 99 * kib, 255, 65536, 1024, 128, mma_sync, dot_unit::none, true}},
      {"sm_90", ptx, nvidia, "sm_90a", "+ptx80", 128, 255, 256 * kib, 50 * mib,
       {32, 227 * kib, 255, 65536, 1024, 132, wgmma, dot_unit::none, true, true, true}},
      // clang-format on
  }};
  return rows;
}

}  // namespace

std::span<const target_row> targets() { return table(); }

const target_row* find_row(std::string_view name) {
  auto found = std::ranges::find(table(), name, &target_row::name);
  return found == table().end() ? nullptr : &*found;
}

std::string describe(const target_row& row) {
  std::string text = fmt::format("{} {} {} {} {} {} {}/{}", enum_name(row.family), row.triple, row.processor,
                                 row.features, row.vector_bits, row.vector_registers, row.l1_bytes, row.l2_bytes);
  if (row.family == target_family::cpu) return text;
  const gpu_row& g = row.gpu;
  return fmt::format("{} {} {} {}/{} {} {} {} {} {}{}{}", text, g.wave, g.lds_bytes, g.registers, g.register_file,
                     g.max_threads, g.compute_units, enum_name(g.matrix), enum_name(g.dots), g.async_copy,
                     g.tensor_copy, g.dependent_launch);
}

}  // namespace kiln
