#include "jit/targets.hpp"

#include <fmt/format.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>

#include <algorithm>
#include <vector>

#include "ir/error.hpp"
#include "jit/fallback_target.hpp"
#include "runtime/host_features.hpp"

namespace kiln {
namespace {

const llvm::StringMap<bool>& host_features() {
  static const llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  return features;
}

bool host_runs(std::string_view row) { return runs_on_host(*find_cpu_row(row)); }

// What the name of no target may mean, as a part of a sentence.
std::string meant(std::string_view name) {
  for (const target_row& row : targets())
    if (llvm::StringRef(row.name).equals_insensitive(name) || (row.processor != "generic" && row.processor == name))
      return fmt::format("did you mean {}? ", row.name);
  const target_row* fallback = fallback_row(std::string(name));
  return fallback ? fmt::format("GPUs of this name run code for {}, ", fallback->name) : "";
}

}  // namespace

target_row find_target(std::string_view name) {
  if (name == "native") return native_target();
  if (const target_row* row = find_row(name)) return *row;
  throw error(error_kind::usage, fmt::format("unknown target '{}': {}see kiln targets", name, meant(name)));
}

target_row native_target() {
  if constexpr (this_architecture == cpu_architecture::aarch64) {
    const cpu_row* best = best_host_row();
    if (!best) throw error(error_kind::wrong_device, "this CPU has no Advanced SIMD, which kernels need");
    target_row row = *find_row(best->name);
    row.name = "native";
    return row;
  }
  target_row row{"native", target_family::cpu, x86_triple, llvm::sys::getHostCPUName().str(), "", 256,
                 16,       32 << 10,           1 << 20};
  std::vector<std::string> features;
  for (const auto& entry : host_features()) {
    const bool usable = entry.second && (!entry.first().starts_with("amx-") || host_has_feature("amx-tile"));
    features.push_back((usable ? "+" : "-") + entry.first().str());
  }
  std::sort(features.begin(), features.end());
  row.features = fmt::format("{}", fmt::join(features, ","));
  if (!host_runs("x86-64-v2"))
    throw error(error_kind::wrong_device, "this CPU: lacks SSE 4.2; kernels need at least x86-64-v2");
  // Without FMA or the other features of level 3, AVX alone is not used.
  if (!host_runs("x86-64-v3")) {
    const target_row* least = find_row("x86-64-v2");
    row.processor = least->processor, row.features = least->features, row.vector_bits = least->vector_bits;
  }
  if (host_runs("x86-64-v4")) {
    row.vector_bits = 512;
    row.vector_registers = 32;
  }
  return row;
}

bool runs_here(const target_row& row) {
  if (row.family != target_family::cpu) return false;
  if (row.name == "native") return true;
  const cpu_row* known = find_cpu_row(row.name);
  return known && runs_on_host(*known);
}

}  // namespace kiln
