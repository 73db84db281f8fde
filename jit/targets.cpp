#include "jit/targets.hpp"

#include <fmt/format.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <array>
#include <vector>

#include "ir/error.hpp"

namespace kiln {
namespace {

const llvm::StringMap<bool>& host_features() {
  static const llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  return features;
}

bool host_has(llvm::StringRef feature) {
  auto found = host_features().find(feature);
  return found != host_features().end() && found->second;
}

// The features that each level adds to the previous one (x86-64 psABI, "micro-architecture levels").
constexpr std::array level_2{"cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"};
constexpr std::array level_3{"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"};
constexpr std::array level_4{"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"};

template <class List>
bool host_has_all(const List& list) {
  return std::all_of(list.begin(), list.end(), [](const char* f) { return host_has(f); });
}

bool is_arm() { return llvm::Triple(llvm::sys::getProcessTriple()).isAArch64(); }

bool needs_byte_products(const target_row& row) { return row.features.find("+i8mm") != std::string::npos; }
bool has_byte_products() { return host_has("dotprod") && host_has("i8mm"); }

}  // namespace

target_row find_target(std::string_view name) {
  if (name == "native") return native_target();
  if (const target_row* row = find_row(name)) return *row;
  throw error(error_kind::usage, fmt::format("unknown target '{}': see kiln targets", name));
}

target_row native_target() {
  if (is_arm()) {
    target_row row = *find_row(has_byte_products() ? "armv8.6-a" : "armv8-a");
    row.name = "native";
    return row;
  }
  target_row row{"native", target_family::cpu, x86_triple, llvm::sys::getHostCPUName().str(), "", 256,
                 16,       32 << 10,           1 << 20};
  std::vector<std::string> features;
  for (const auto& entry : host_features()) features.push_back((entry.second ? "+" : "-") + entry.first().str());
  std::sort(features.begin(), features.end());
  row.features = fmt::format("{}", fmt::join(features, ","));
  if (!host_has_all(level_2))
    throw error(error_kind::wrong_device, "this CPU: lacks SSE 4.2; kernels need at least x86-64-v2");
  // Without FMA or the other features of level 3, AVX alone is not used.
  if (!host_has_all(level_3)) {
    const target_row* least = find_row("x86-64-v2");
    row.processor = least->processor, row.features = least->features, row.vector_bits = least->vector_bits;
  }
  if (host_has_all(level_4)) {
    row.vector_bits = 512;
    row.vector_registers = 32;
  }
  return row;
}

bool runs_here(const target_row& row) {
  if (row.family != target_family::cpu) return false;
  if (row.name == "native") return true;
  if (is_arm() || row.triple != x86_triple)
    return is_arm() && row.triple == arm_triple && (!needs_byte_products(row) || has_byte_products());
  return host_has_all(level_2) && (row.vector_bits < 256 || host_has_all(level_3)) &&
         (row.vector_bits < 512 || host_has_all(level_4));
}

}  // namespace kiln
