// AMD GPUs. A new one is a new row.
//
// LDS is what one workgroup can have. Registers are of one thread (accumulation registers included) and of one compute
// unit. On the RDNA families a compute unit is half of a workgroup processor.
#include <algorithm>
#include <iterator>

#include "mlir_bridge/targets/gpu_rows.hpp"

namespace kiln {
namespace {

constexpr const char* triple = "amdgcn-amd-amdhsa";
constexpr std::int64_t kib = 1 << 10, mib = 1 << 20;

// Where the numbers come from.
constexpr const char *specifications = "ROCm documentation, GPU hardware specifications; LLVM's AMDGPU processors",
                     *announced = "AMD's product page; LLVM's AMDGPU processors",
                     *processors = "LLVM's AMDGPU processors",
                     *least = "the least of the processors in LLVM's AMDGPU user guide, Generic Processors";

target_row amd(const char* name, std::int64_t l1, std::int64_t l2, gpu_row gpu, const char* products,
               const char* source) {
  return {name, target_family::amdgpu, triple, name, "", 128, gpu.registers, l1, l2, gpu, products, source};
}

using enum matrix_unit;
constexpr auto dots = dot_unit::f16_and_i8, no_dots = dot_unit::none;

std::vector<target_row> processor_rows() {
  return {
      // name, L1 and L2 data cache bytes,
      //   {wave, LDS, registers of a thread and of a unit, most threads, units, matrix unit, dot unit}, products,
      //   source
      // clang-format off
      // --- GCN 5
      amd("gfx900", 16 * kib, 4 * mib, {64, 64 * kib, 256, 65536, 1024, 64, none, no_dots},
          "Instinct MI25, Radeon RX Vega 56 and 64", specifications),
      amd("gfx902", 16 * kib, 1 * mib, {64, 64 * kib, 256, 65536, 1024, 11, none, no_dots},
          "Ryzen 2000 and 3000 APUs", announced),
      amd("gfx904", 16 * kib, 1 * mib, {64, 64 * kib, 256, 65536, 1024, 20, none, no_dots},
          "Radeon Pro Vega 16 and 20", announced),
      amd("gfx906", 16 * kib, 4 * mib, {64, 64 * kib, 256, 65536, 1024, 60, none, dots},
          "Instinct MI50 and MI60, Radeon VII, Radeon Pro VII", specifications),
      amd("gfx909", 16 * kib, 1 * mib, {64, 64 * kib, 256, 65536, 1024, 3, none, no_dots},
          "Athlon and Ryzen Embedded APUs (Raven 2)", announced),
      amd("gfx90c", 16 * kib, 1 * mib, {64, 64 * kib, 256, 65536, 1024, 8, none, no_dots},
          "Ryzen 4000 and 5000 APUs", announced),
      // --- CDNA
      amd("gfx908", 16 * kib, 8 * mib, {64, 64 * kib, 512, 131072, 1024, 120, mfma_gfx908, dots},
          "Instinct MI100", specifications),
      amd("gfx90a", 16 * kib, 8 * mib, {64, 64 * kib, 512, 131072, 1024, 104, mfma_gfx90a, dots},
          "Instinct MI210, MI250, MI250X", specifications),
      amd("gfx942", 32 * kib, 4 * mib, {64, 64 * kib, 512, 131072, 1024, 304, mfma_gfx942, dots},
          "Instinct MI300A, MI300X, MI325X", specifications),
      amd("gfx950", 32 * kib, 4 * mib, {64, 160 * kib, 512, 131072, 1024, 256, mfma_gfx950, dots},
          "Instinct MI350X, MI355X", specifications),
      // --- RDNA 1
      amd("gfx1010", 16 * kib, 4 * mib, {32, 64 * kib, 256, 65536, 1024, 40, none, no_dots},
          "Radeon RX 5600 and 5700, Radeon Pro W5700", announced),
      amd("gfx1011", 16 * kib, 4 * mib, {32, 64 * kib, 256, 65536, 1024, 36, none, dots},
          "Radeon Pro V520, Radeon Pro 5600M", announced),
      amd("gfx1012", 16 * kib, 4 * mib, {32, 64 * kib, 256, 65536, 1024, 22, none, dots},
          "Radeon RX 5500, Radeon Pro W5500", specifications),
      amd("gfx1013", 16 * kib, 4 * mib, {32, 64 * kib, 256, 65536, 1024, 24, none, no_dots},
          "BC-250", announced),
      // --- RDNA 2
      amd("gfx1030", 16 * kib, 4 * mib, {32, 64 * kib, 256, 65536, 1024, 72, none, dots},
          "Radeon RX 6800, 6900 and 6950, Radeon Pro W6800 and V620", specifications),
      amd("gfx1031", 16 * kib, 3 * mib, {32, 64 * kib, 256, 65536, 1024, 40, none, dots},
          "Radeon RX 6700 and 6750", specifications),
      amd("gfx1032", 16 * kib, 2 * mib, {32, 64 * kib, 256, 65536, 1024, 32, none, dots},
          "Radeon RX 6600 and 6650, Radeon Pro W6600", specifications),
      amd("gfx1033", 16 * kib, 1 * mib, {32, 64 * kib, 256, 65536, 1024, 8, none, dots}, "Steam Deck", announced),
      amd("gfx1034", 16 * kib, 1 * mib, {32, 64 * kib, 256, 65536, 1024, 16, none, dots},
          "Radeon RX 6400 and 6500, Radeon Pro W6400", announced),
      amd("gfx1035", 16 * kib, 2 * mib, {32, 64 * kib, 256, 65536, 1024, 12, none, dots}, "Radeon 660M and 680M",
          announced),
      amd("gfx1036", 16 * kib, 256 * kib, {32, 64 * kib, 256, 65536, 1024, 2, none, dots},
          "Ryzen 7000 and 9000 desktop processors", announced),
      // --- RDNA 3
      amd("gfx1100", 32 * kib, 6 * mib, {32, 64 * kib, 256, 98304, 1024, 96, wmma_gfx11, dots},
          "Radeon RX 7900, Radeon Pro W7800 and W7900", specifications),
      amd("gfx1101", 32 * kib, 4 * mib, {32, 64 * kib, 256, 98304, 1024, 60, wmma_gfx11, dots},
          "Radeon RX 7700 and 7800, Radeon Pro W7700 and V710", specifications),
      amd("gfx1102", 32 * kib, 2 * mib, {32, 64 * kib, 256, 65536, 1024, 32, wmma_gfx11, dots}, "Radeon RX 7600",
          specifications),
      amd("gfx1103", 32 * kib, 2 * mib, {32, 64 * kib, 256, 65536, 1024, 12, wmma_gfx11, dots},
          "Radeon 740M, 760M and 780M", specifications),
      amd("gfx1150", 32 * kib, 2 * mib, {32, 64 * kib, 256, 65536, 1024, 16, wmma_gfx11, dots},
          "Radeon 880M and 890M", specifications),
      amd("gfx1151", 32 * kib, 2 * mib, {32, 64 * kib, 256, 98304, 1024, 40, wmma_gfx11, dots},
          "Radeon 8050S and 8060S", specifications),
      amd("gfx1152", 32 * kib, 1 * mib, {32, 64 * kib, 256, 65536, 1024, 8, wmma_gfx11, dots},
          "Radeon 840M and 860M", specifications),
      amd("gfx1153", 32 * kib, 1 * mib, {32, 64 * kib, 256, 65536, 1024, 4, wmma_gfx11, dots}, "Radeon 820M",
          announced),
      // --- RDNA 4
      amd("gfx1200", 32 * kib, 4 * mib, {32, 64 * kib, 256, 98304, 1024, 32, wmma_gfx12, dots}, "Radeon RX 9060",
          specifications),
      amd("gfx1201", 32 * kib, 8 * mib, {32, 64 * kib, 256, 98304, 1024, 64, wmma_gfx12, dots},
          "Radeon RX 9070, Radeon AI Pro R9600D and R9700", specifications),
      // --- CDNA 5. AMD has published neither units nor caches: these are gfx1200's. LLVM's WMMA of 32 steps has other
      // layouts than those in our table, so products use the vector unit.
      amd("gfx1250", 32 * kib, 4 * mib, {32, 320 * kib, 256, 98304, 1024, 32, none, no_dots}, "Instinct MI400", processors),
      amd("gfx1251", 32 * kib, 4 * mib, {32, 320 * kib, 256, 98304, 1024, 32, none, no_dots}, "Instinct MI400", processors),
      // clang-format on
  };
}

// Code for all processors of a family (runtime/gpu/generic_targets.hpp says which device takes which).
std::vector<target_row> generic_rows() {
  return {
      // clang-format off
      amd("gfx9-generic", 16 * kib, 1 * mib, {64, 64 * kib, 256, 65536, 1024, 20, none, no_dots},
          "gfx900, gfx902, gfx904, gfx906, gfx909, gfx90c", least),
      amd("gfx9-4-generic", 32 * kib, 4 * mib, {64, 64 * kib, 512, 131072, 1024, 228, mfma_gfx942, dots},
          "gfx940, gfx941, gfx942, gfx950", least),
      amd("gfx10-1-generic", 16 * kib, 2 * mib, {32, 64 * kib, 256, 65536, 1024, 22, none, no_dots},
          "gfx1010, gfx1011, gfx1012, gfx1013", least),
      amd("gfx10-3-generic", 16 * kib, 1 * mib, {32, 64 * kib, 256, 65536, 1024, 16, none, dots},
          "gfx1030 to gfx1036", least),
      amd("gfx11-generic", 32 * kib, 2 * mib, {32, 64 * kib, 256, 65536, 1024, 16, wmma_gfx11, dots},
          "gfx1100 to gfx1103, gfx1150 to gfx1153", least),
      amd("gfx12-generic", 32 * kib, 4 * mib, {32, 64 * kib, 256, 98304, 1024, 32, wmma_gfx12, dots},
          "gfx1200, gfx1201", least),
      // clang-format on
  };
}

}  // namespace

std::vector<target_row> amd_rows() {
  std::vector<target_row> rows = processor_rows();
  std::ranges::move(generic_rows(), std::back_inserter(rows));
  return rows;
}

}  // namespace kiln
