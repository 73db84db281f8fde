#include "jit/finalize_spirv.hpp"

#include <fmt/format.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>

#include "ir/error.hpp"
#include "jit/rocm_candidate.hpp"
#include "mlir_bridge/finalize_llvm.hpp"
#include "spirv/lowering/lowering.hpp"
#include "spirv/object.hpp"
#include "spirv/offload_bundle.hpp"
#include "spirv/reader/reader.hpp"

namespace kiln {
namespace {

struct family_row {
  target_family family;
  spirv::machine_kind kind;
  spirv::address_spaces spaces;
};
constexpr std::array family_rows{
    family_row{target_family::cpu, spirv::machine_kind::host, spirv::host_spaces},
    family_row{target_family::amdgpu, spirv::machine_kind::amdgpu, spirv::amdgpu_spaces},
    family_row{target_family::nvidia, spirv::machine_kind::nvidia, spirv::nvidia_spaces},
};

const std::map<spirv::parameter_kind, buffer_kind> buffer_kinds{
    {spirv::parameter_kind::input, buffer_kind::input}, {spirv::parameter_kind::output, buffer_kind::output}, {spirv::parameter_kind::scratch, buffer_kind::scratch}};

// What a launch is in both worlds: how its entry is made, and how the runtime calls it.
struct launch_pair {
  spirv::launch_site site;
  launch native;
};

launch_pair make_launch(const spirv::resolved_launch& resolved, const std::string& symbol, const target_row& target) {
  std::int64_t items = resolved.block[0] * resolved.block[1] * resolved.block[2];
  launch_pair result;
  result.site = {resolved.symbol, symbol, resolved.grid, resolved.block, resolved.shared_bytes, {}};
  launch& l = result.native;
  l.symbol = symbol;
  if (target.family == target_family::cpu) {
    l.grid = resolved.grid[0] * resolved.grid[1] * resolved.grid[2];
  } else {
    l.grid = resolved.grid[0], l.grid_y = resolved.grid[1], l.grid_z = resolved.grid[2];
    l.block = items;
    l.lds_bytes = resolved.shared_bytes;
  }
  for (const spirv::resolved_argument& a : resolved.arguments) {
    auto buffer = buffer_kinds.find(a.kind);
    result.site.values.push_back({buffer != buffer_kinds.end(), a.bits});
    if (buffer != buffer_kinds.end()) l.arguments.push_back({buffer->second, a.index});
  }
  return result;
}

// Also the scratch buffers and launches of `kernel`.
std::vector<launch_pair> make_launches(const spirv::resolved_object& resolved, const target_row& target, native_kernel& kernel) {
  std::vector<launch_pair> result;
  for (std::int64_t bytes : resolved.scratch) kernel.scratch.push_back({bytes});
  for (const spirv::resolved_launch& l : resolved.launches) {
    auto same = std::ranges::count(resolved.launches, l.symbol, &spirv::resolved_launch::symbol);
    result.push_back(make_launch(l, same > 1 ? fmt::format("{}_{}", l.symbol, result.size()) : l.symbol, target));
    kernel.launches.push_back(result.back().native);
  }
  return result;
}

spirv::resolved_object resolve(const spirv::object& object, std::span<const shape> inputs, std::span<const shape> outputs, const target_row& target) {
  spirv::resolve_limits limits;
  if (target.family != target_family::cpu) limits.max_threads = target.gpu.max_threads;
  return spirv::resolve(object, inputs, outputs, limits);
}

double milliseconds_since(std::chrono::steady_clock::time_point begin) { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count(); }

}  // namespace

native_kernel finalize_spirv(std::span<const std::byte> payload, std::span<const shape> inputs, std::span<const shape> outputs, const target_row& target, finalize_trace* trace) {
  auto begin = std::chrono::steady_clock::now();
  spirv::object object = spirv::deserialize_object(payload);
  spirv::resolved_object resolved = resolve(object, inputs, outputs, target);
  native_kernel result;
  std::vector<spirv::launch_site> sites;
  for (launch_pair& made : make_launches(resolved, target, result)) sites.push_back(std::move(made.site));

  const family_row& row = *std::ranges::find(family_rows, target.family, &family_row::family);
  llvm::LLVMContext context;
  auto module = spirv::read(object.words, context, {row.spaces, target.triple.c_str()});
  if (trace) trace->generate_ms = milliseconds_since(begin);
  begin = std::chrono::steady_clock::now();
  spirv::lowering_target lowering{row.kind, row.kind == spirv::machine_kind::host ? spirv::host_wave : target.gpu.wave, target.processor, target.features};
  spirv::make_entries(*module, sites);
  auto functions = spirv::lower_math(*module, lowering);
  if (row.kind == spirv::machine_kind::host) spirv::lower_host(*module, sites, lowering);
  else spirv::lower_gpu(*module, sites, lowering);
  define_math(*module, functions, target);
  if (trace) trace->lower_ms = milliseconds_since(begin);
  finalize_llvm(*module, target, result, trace);
  return result;
}

std::optional<native_kernel> rocm_candidate(std::span<const std::byte> payload, std::span<const shape> inputs, std::span<const shape> outputs, const target_row& target) {
  if (target.family != target_family::amdgpu) return std::nullopt;
  spirv::object object = spirv::deserialize_object(payload);
  native_kernel result;
  std::vector<launch_pair> launches = make_launches(resolve(object, inputs, outputs, target), target, result);
  for (std::size_t k = 0; k < launches.size(); ++k) {
    if (!std::ranges::all_of(launches[k].site.values, &spirv::launch_value::buffer)) return std::nullopt;
    // Workgroups of several dimensions are linear in a native launch.
    if (launches[k].site.block[1] != 1 || launches[k].site.block[2] != 1) return std::nullopt;
    result.launches[k].symbol = launches[k].site.kernel;
  }
  result.object = spirv::make_offload_bundle(object.words);
  return result;
}

bool is_spirv_payload(std::span<const std::byte> payload) { return payload.size() >= 8 && std::memcmp(payload.data() + 4, "KSPV", 4) == 0; }

int spirv_pipeline_version() { return 1; }

}  // namespace kiln
