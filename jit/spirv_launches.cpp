#include "jit/spirv_launches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "spirv/operands.hpp"

namespace kiln {
namespace {

const std::map<spirv::parameter_kind, buffer_kind> buffer_kinds{{spirv::parameter_kind::input, buffer_kind::input},
                                                                {spirv::parameter_kind::output, buffer_kind::output},
                                                                {spirv::parameter_kind::scratch, buffer_kind::scratch}};

spirv::launch_site make_launch(const spirv::resolved_launch& resolved, const std::string& symbol,
                               const target_row& target, launch& l) {
  spirv::launch_site site{resolved.symbol, symbol, resolved.grid, resolved.block, resolved.shared_bytes, {}};
  l.symbol = symbol;
  if (target.family == target_family::cpu) {
    l.grid = resolved.grid[0] * resolved.grid[1] * resolved.grid[2];
  } else {
    l.grid = resolved.grid[0], l.grid_y = resolved.grid[1], l.grid_z = resolved.grid[2];
    l.block = resolved.block[0] * resolved.block[1] * resolved.block[2];
    l.lds_bytes = resolved.shared_bytes;
  }
  for (const spirv::resolved_argument& a : resolved.arguments) {
    auto buffer = buffer_kinds.find(a.kind);
    site.values.push_back({buffer != buffer_kinds.end(), a.bits});
    if (buffer != buffer_kinds.end()) l.arguments.push_back({buffer->second, a.index});
  }
  return site;
}

}  // namespace

std::vector<spirv::launch_site> make_launches(const spirv::object& object, std::span<const shape> inputs,
                                              std::span<const shape> outputs, const target_row& target,
                                              native_kernel& kernel) {
  spirv::resolve_limits limits;
  limits.lone_tasks = target.family == target_family::cpu;
  if (target.family != target_family::cpu) limits.max_threads = target.gpu.max_threads;
  spirv::check_operands(object, inputs, outputs);
  spirv::resolved_object resolved = spirv::resolve(object, inputs, outputs, limits);
  std::vector<spirv::launch_site> sites;
  for (std::int64_t bytes : resolved.scratch) kernel.scratch.push_back({bytes});
  for (const spirv::resolved_launch& l : resolved.launches) {
    auto same = std::ranges::count(resolved.launches, l.symbol, &spirv::resolved_launch::symbol);
    sites.push_back(make_launch(l, same > 1 ? fmt::format("{}_{}", l.symbol, sites.size()) : l.symbol, target,
                                kernel.launches.emplace_back()));
  }
  return sites;
}

}  // namespace kiln
