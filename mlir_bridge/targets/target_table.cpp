#include "mlir_bridge/targets/target_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "mlir_bridge/targets/gpu_rows.hpp"

namespace kiln {
namespace {

constexpr std::int64_t kib = 1 << 10, mib = 1 << 20;
constexpr const char* arm = "Arm Architecture Reference Manual for A-profile; LLVM's AArch64 processors";
constexpr const char* levels = "x86-64 psABI, micro-architecture levels";

const std::vector<target_row>& table() {
  static const std::vector<target_row> rows = [] {
    constexpr auto cpu = target_family::cpu;
    std::vector<target_row> all{
        // name, family, triple, processor, features, vector bits, vector registers, L1 and L2 data cache bytes
        {"x86-64-v2", cpu, x86_triple, "x86-64-v2", "", 128, 16, 32 * kib, 256 * kib, {}, "Nehalem and later", levels},
        {"x86-64-v3", cpu, x86_triple, "x86-64-v3", "", 256, 16, 32 * kib, 256 * kib, {}, "Haswell, Zen", levels},
        {"x86-64-v4", cpu, x86_triple, "x86-64-v4", "", 512, 32, 32 * kib, 1 * mib, {}, "Skylake-X, Zen 4", levels},
        {"armv8-a", cpu, arm_triple, "generic", "+neon", 128, 32, 32 * kib, 256 * kib, {}, "64-bit Arm", arm},
        {"armv8.6-a",
         cpu,
         arm_triple,
         "generic",
         "+v8.6a,+neon,+dotprod,+i8mm,+bf16",
         128,
         32,
         64 * kib,
         1 * mib,
         {},
         "Neoverse V1 and N2, Apple M2, and later",
         arm},
    };
    for (auto* rows_of : {amd_rows, nvidia_rows}) std::ranges::move(rows_of(), std::back_inserter(all));
    return all;
  }();
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
