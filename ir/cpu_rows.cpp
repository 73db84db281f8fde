#include "ir/cpu_rows.hpp"

#include <algorithm>

namespace kiln {
namespace {

constexpr std::int64_t kib = 1 << 10, mib = 1 << 20;
constexpr auto x86 = cpu_architecture::x86_64, arm = cpu_architecture::aarch64;
constexpr const char *levels = "x86-64 psABI, micro-architecture levels",
                     *manual = "Arm Architecture Reference Manual for A-profile; LLVM's AArch64 processors",
                     *guides = "Arm's Neoverse technical reference manuals; LLVM's AArch64 processors",
                     *fujitsu = "Fujitsu's A64FX microarchitecture manual; LLVM's AArch64 processors",
                     *intel = "Intel Architecture Instruction Set Extensions Programming Reference",
                     *zen = "Software Optimization Guide for the AMD Zen 4 Microarchitecture",
                     *apple = "Apple silicon CPU optimization guide; LLVM's AArch64 processors";
constexpr unsigned apple_cores = 0x61;

constexpr cpu_row rows[] = {
    // name, architecture, processor, features, vector bits and registers, L1 and L2, designer, products, source
    {"x86-64-v2", x86, "x86-64-v2", "", 128, 16, 32 * kib, 256 * kib, 0, "Nehalem and later", levels},
    {"x86-64-v3", x86, "x86-64-v3", "", 256, 16, 32 * kib, 256 * kib, 0, "Haswell, Zen", levels},
    {"x86-64-v4", x86, "x86-64-v4", "", 512, 32, 32 * kib, 1 * mib, 0, "Skylake-X", levels},
    {"cascadelake", x86, "x86-64-v4", "+avx512vnni", 512, 32, 32 * kib, 1 * mib, 0, "Cascade Lake, Ice Lake", intel},
    {"zen4", x86, "x86-64-v4", "+avx512vnni,+avx512bf16", 512, 32, 32 * kib, 1 * mib, 0, "Zen 4, Zen 5", zen},
    {"sapphirerapids", x86, "x86-64-v4", "+avx512vnni,+avx512bf16,+amx-tile,+amx-int8,+amx-bf16", 512, 32, 32 * kib,
     2 * mib, 0, "Sapphire, Emerald and Granite Rapids", intel},
    {"armv8-a", arm, "generic", "+neon", 128, 32, 32 * kib, 256 * kib, 0, "64-bit Arm", manual},
    {"armv8.2-a", arm, "generic", "+v8.2a,+neon,+fullfp16,+dotprod", 128, 32, 64 * kib, 512 * kib, 0,
     "Cortex-A75 and later, Neoverse N1", guides},
    {"armv8-sve512", arm, "generic", "+v8.2a,+neon,+fullfp16,+sve", 512, 32, 64 * kib, 512 * kib, 0, "A64FX", fujitsu},
    {"armv8.6-a", arm, "generic", "+v8.2a,+neon,+fullfp16,+fp16fml,+dotprod,+i8mm,+bf16", 128, 32, 64 * kib, 1 * mib, 0,
     "Neoverse N2 and V2, Cortex-A510 and later", guides},
    {"armv8-sve256", arm, "generic", "+v8.2a,+neon,+fullfp16,+fp16fml,+dotprod,+i8mm,+bf16,+sve", 256, 32, 64 * kib,
     1 * mib, 0, "Neoverse V1", guides},
    {"apple-m1", arm, "apple-m1", "+neon,+fullfp16,+fp16fml,+dotprod", 128, 32, 128 * kib, 3 * mib, apple_cores,
     "Apple M1", apple},
    {"apple-m2", arm, "apple-m2", "+neon,+fullfp16,+fp16fml,+dotprod,+i8mm,+bf16", 128, 32, 128 * kib, 4 * mib,
     apple_cores, "Apple M2 and later", apple},
};

}  // namespace

std::span<const cpu_row> cpu_rows() { return rows; }

const cpu_row* find_cpu_row(std::string_view name) {
  const auto* found = std::ranges::find(rows, name, &cpu_row::name);
  return found == std::end(rows) ? nullptr : found;
}

}  // namespace kiln
