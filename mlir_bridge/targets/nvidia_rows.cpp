// NVIDIA GPUs. A new one is a new row.
//
// The features name the lowest PTX version that knows the architecture, at least 8.0 from sm_80 on: an older driver
// refuses text of a newer version. Only sm_90 uses features of one architecture ("sm_90a"), so a newer device without a
// row takes the code of another row (runtime/gpu/generic_targets.hpp).
#include "mlir_bridge/targets/gpu_rows.hpp"

namespace kiln {
namespace {

constexpr std::int64_t kib = 1 << 10, mib = 1 << 20;
constexpr const char* source =
    "CUDA C++ Programming Guide, Technical Specifications per Compute Capability; architecture white paper; PTX ISA";

target_row nvidia(const char* name, const char* processor, const char* features, std::int64_t l1, std::int64_t l2,
                  gpu_row gpu, const char* products) {
  return {name,  target_family::nvidia, "nvptx64-nvidia-cuda", processor, features, 128, 255, l1, l2, gpu, products,
          source};
}

}  // namespace

std::vector<target_row> nvidia_rows() {
  using enum matrix_unit;
  constexpr auto no_dots = dot_unit::none;
  return {
      // name, processor, features, L1 and L2 data cache bytes,
      //   {wave, LDS, registers of a thread and of a unit, most threads, units, matrix unit, dot unit, asynchronous
      //   copy, tensor copy, dependent launch}, products
      // clang-format off
      // The tensor cores of sm_70 and sm_72 multiply 8 x 8 x 4 in groups of 8 lanes; our table has no map for them.
      nvidia("sm_70", "sm_70", "+ptx60", 128 * kib, 6 * mib, {32, 96 * kib, 255, 65536, 1024, 80, none, no_dots},
             "V100, Titan V"),
      nvidia("sm_72", "sm_72", "+ptx61", 128 * kib, 512 * kib, {32, 96 * kib, 255, 65536, 1024, 8, none, no_dots},
             "Jetson Xavier"),
      nvidia("sm_75", "sm_75", "+ptx65", 96 * kib, 4 * mib, {32, 64 * kib, 255, 65536, 1024, 40, mma_sm75, no_dots},
             "T4, GeForce RTX 20 and GTX 16, Quadro RTX"),
      nvidia("sm_80", "sm_80", "+ptx80", 192 * kib, 40 * mib,
             {32, 163 * kib, 255, 65536, 1024, 108, mma_sync, no_dots, true}, "A100, A30"),
      nvidia("sm_86", "sm_86", "+ptx80", 128 * kib, 6 * mib,
             {32, 99 * kib, 255, 65536, 1024, 84, mma_sync, no_dots, true}, "GeForce RTX 30, A10, A40, RTX A6000"),
      nvidia("sm_87", "sm_87", "+ptx80", 192 * kib, 4 * mib,
             {32, 163 * kib, 255, 65536, 1024, 16, mma_sync, no_dots, true}, "Jetson Orin"),
      nvidia("sm_89", "sm_89", "+ptx80", 128 * kib, 72 * mib,
             {32, 99 * kib, 255, 65536, 1024, 128, mma_sync, no_dots, true}, "GeForce RTX 40, L4, L40"),
      nvidia("sm_90", "sm_90a", "+ptx80", 256 * kib, 50 * mib,
             {32, 227 * kib, 255, 65536, 1024, 132, wgmma, no_dots, true, true, true}, "H100, H200, GH200"),
      // Blackwell's tcgen05 instructions are not used; mma.sync runs everywhere. Our tensor copies serve wgmma only.
      nvidia("sm_100", "sm_100", "+ptx86", 256 * kib, 126 * mib,
             {32, 227 * kib, 255, 65536, 1024, 148, mma_sync, no_dots, true, false, true}, "B200, GB200"),
      nvidia("sm_103", "sm_103", "+ptx88", 256 * kib, 126 * mib,
             {32, 227 * kib, 255, 65536, 1024, 148, mma_sync, no_dots, true, false, true}, "B300, GB300"),
      nvidia("sm_110", "sm_110", "+ptx90", 256 * kib, 32 * mib,
             {32, 227 * kib, 255, 65536, 1024, 20, mma_sync, no_dots, true, false, true}, "Jetson Thor"),
      nvidia("sm_120", "sm_120", "+ptx87", 128 * kib, 96 * mib,
             {32, 99 * kib, 255, 65536, 1024, 170, mma_sync, no_dots, true, false, true},
             "GeForce RTX 50, RTX Pro 6000 Blackwell"),
      nvidia("sm_121", "sm_121", "+ptx88", 128 * kib, 24 * mib,
             {32, 99 * kib, 255, 65536, 1024, 48, mma_sync, no_dots, true, false, true}, "DGX Spark (GB10)"),
      // clang-format on
  };
}

}  // namespace kiln
