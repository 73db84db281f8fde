#include "runtime/host_features.hpp"

#include <algorithm>
#include <cstdint>

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace kiln {
namespace {

#if defined(__aarch64__)
// A feature of 64-bit Arm: LLVM's name, and the bits of the auxiliary vector with which Linux reports it.
struct arm_feature {
  std::string_view name;
  std::uint64_t first, second;  // in AT_HWCAP and AT_HWCAP2
};

constexpr arm_feature arm_features[] = {
    {"neon", HWCAP_FP | HWCAP_ASIMD, 0},
    {"fullfp16", HWCAP_FPHP | HWCAP_ASIMDHP, 0},
    {"fp16fml", HWCAP_ASIMDFHM, 0},
    {"dotprod", HWCAP_ASIMDDP, 0},
    {"i8mm", 0, HWCAP2_I8MM},
    {"bf16", 0, HWCAP2_BF16},
    {"sve", HWCAP_SVE, 0},
    {"sve2", 0, HWCAP2_SVE2},
    // Version 8.2 of the architecture includes large-system atomics and the rounding multiply-adds of 8.1.
    {"v8.2a", HWCAP_ATOMICS | HWCAP_ASIMDRDM | HWCAP_CRC32, 0},
};

bool reported(const arm_feature& feature) {
  return (getauxval(AT_HWCAP) & feature.first) == feature.first &&
         (getauxval(AT_HWCAP2) & feature.second) == feature.second;
}
bool has_feature(std::string_view name) {
  const auto* found = std::ranges::find(arm_features, name, &arm_feature::name);
  return found != std::end(arm_features) && reported(*found);
}
#elif defined(__x86_64__)
// A feature of x86-64 beyond the psABI's levels: LLVM's name, and the bit of leaf 7 of CPUID that tells it.
struct x86_feature {
  std::string_view name;
  unsigned subleaf;
  enum class leaf_register { eax, ecx, edx } in;
  unsigned bit;
  bool tiles = false;  // computes with tile registers
};

constexpr x86_feature x86_features[] = {
    {"avx512vnni", 0, x86_feature::leaf_register::ecx, 11},
    {"avx512bf16", 1, x86_feature::leaf_register::eax, 5},
    {"amx-tile", 0, x86_feature::leaf_register::edx, 24, true},
    {"amx-int8", 0, x86_feature::leaf_register::edx, 25, true},
    {"amx-bf16", 0, x86_feature::leaf_register::edx, 22, true},
};

// Linux saves tile registers only for processes that have asked for them. Asks once; threads inherit the permission.
bool may_use_tiles() {
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool granted = ::syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  return granted;
}

bool has_feature(std::string_view name) {
  const auto* found = std::ranges::find(x86_features, name, &x86_feature::name);
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (found == std::end(x86_features) || !__get_cpuid_count(7, found->subleaf, &a, &b, &c, &d)) return false;
  using enum x86_feature::leaf_register;
  const unsigned bits = found->in == eax ? a : found->in == ecx ? c : d;
  return (bits >> found->bit & 1) != 0 && (!found->tiles || may_use_tiles());
}
#else
bool has_feature(std::string_view) { return false; }
#endif

// Whether all features of a list "+neon,+dotprod" are reported. A feature that Linux does not report is not there.
bool has_all(std::string_view list) {
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    if (!has_feature(list.substr(1, comma - 1))) return false;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return true;
}

// The psABI's level that is a row's processor.
bool has_level(std::string_view level) {
#if defined(__x86_64__)
  if (level == "x86-64-v4") return __builtin_cpu_supports("x86-64-v4");
  if (level == "x86-64-v3") return __builtin_cpu_supports("x86-64-v3");
  if (level == "x86-64-v2") return __builtin_cpu_supports("x86-64-v2");
#endif
  return false;
}

}  // namespace

bool host_has_feature(std::string_view name) { return has_feature(name); }

int host_sve_bits() {
#if defined(__aarch64__)
  if (!has_feature("sve")) return 0;
  const int length = ::prctl(PR_SVE_GET_VL);  // in bytes
  return length < 0 ? 0 : 8 * (length & PR_SVE_VL_LEN_MASK);
#else
  return 0;
#endif
}

host_core find_host_core() {
#if defined(__aarch64__)
  if (!(getauxval(AT_HWCAP) & HWCAP_CPUID)) return {};
  std::uint64_t identity = 0;
  asm("mrs %0, MIDR_EL1" : "=r"(identity));  // the kernel answers for the processor
  return {static_cast<unsigned>(identity >> 24 & 0xff), static_cast<unsigned>(identity >> 4 & 0xfff)};
#else
  return {};
#endif
}

bool runs_on_host(const cpu_row& row) {
  if (row.architecture != this_architecture) return false;
  if (row.architecture == cpu_architecture::x86_64) return has_level(row.processor) && has_all(row.features);
  const bool sve = row.features.find("+sve") != std::string_view::npos;
  return has_all(row.features) && (!sve || host_sve_bits() == row.vector_bits);
}

const cpu_row* best_host_row() {
  const cpu_row* best = nullptr;
  for (const cpu_row& row : cpu_rows())
    if (runs_on_host(row) && (row.designer == 0 || row.designer == find_host_core().designer)) best = &row;
  return best;
}

}  // namespace kiln
