#include "jit/spirv_launches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "spirv/operands.hpp"

namespace kiln {
namespace {

const std::map<spirv::parameter_kind, buffer_kind> buffer_kinds{{spirv::parameter_kind::input, buffer_kind::input},
                                                                {spirv::parameter_kind::output, buffer_kind::output},
                                                                {spirv::parameter_kind::scratch, buffer_kind::scratch}};

// The table of sizes of a kernel while its launches are made.
std::uint32_t place_of(native_kernel& kernel, const dim& size) {
  const auto found = std::ranges::find(kernel.sizes, size);
  const auto place = static_cast<std::uint32_t>(found - kernel.sizes.begin());
  if (found == kernel.sizes.end()) kernel.sizes.push_back(size);
  return place;
}

// Sets the grid of a launch and of its site. One that depends on open dims has one dimension, in which the entry finds
// its place with the sizes of the table.
void set_grid(const spirv::resolved_launch& resolved, const target_row& target, native_kernel& kernel, launch& l,
              spirv::launch_site& site) {
  const auto& grid = resolved.grid;
  const dim groups = grid[0] * grid[1] * grid[2];
  for (std::size_t d = 0; d < 3; ++d)
    if (grid[d].is_static()) site.grid[d] = grid[d].value();
    else site.open_grid[d] = place_of(kernel, grid[d]);
  if (!groups.is_static()) l.open_grid = groups;
  else if (target.family == target_family::cpu) l.grid = groups.value();
  else l.grid = site.grid[0], l.grid_y = site.grid[1], l.grid_z = site.grid[2];
}

spirv::launch_site make_launch(const spirv::resolved_launch& resolved, const std::string& symbol,
                               const target_row& target, native_kernel& kernel) {
  launch& l = kernel.launches.emplace_back();
  spirv::launch_site site{resolved.symbol, symbol, {1, 1, 1}, resolved.block, resolved.shared_bytes, {}};
  l.symbol = symbol;
  set_grid(resolved, target, kernel, l, site);
  if (target.family != target_family::cpu) {
    l.block = resolved.block[0] * resolved.block[1] * resolved.block[2];
    l.lds_bytes = resolved.shared_bytes;
  }
  for (const spirv::resolved_argument& a : resolved.arguments) {
    auto buffer = buffer_kinds.find(a.kind);
    spirv::launch_value value{buffer != buffer_kinds.end(), a.bits};
    if (a.open) value.open = place_of(kernel, *a.open);
    site.values.push_back(value);
    if (buffer != buffer_kinds.end()) l.arguments.push_back({buffer->second, a.index});
  }
  return site;
}

bool reads_sizes(const spirv::launch_site& site) {
  return site.has_open_grid() ||
         std::ranges::any_of(site.values, [](const spirv::launch_value& v) { return v.open.has_value(); });
}

}  // namespace

std::vector<spirv::launch_site> make_launches(const spirv::object& object, std::span<const shape> inputs,
                                              std::span<const shape> outputs, const target_row& target,
                                              native_kernel& kernel) {
  spirv::resolve_limits limits;
  limits.lone_tasks = target.family == target_family::cpu;
  if (target.family != target_family::cpu) limits.max_threads = target.gpu.max_threads;
  std::vector<dim> bounded = spirv::check_operands(object, inputs, outputs);
  spirv::resolved_object resolved = spirv::resolve(object, inputs, outputs, limits);
  std::ranges::move(resolved.bounded, std::back_inserter(bounded));
  kernel.bounded_sizes = std::move(bounded);
  for (const dim& bytes : resolved.scratch) {
    scratch_buffer& buffer = kernel.scratch.emplace_back();
    if (bytes.is_static()) buffer.bytes = bytes.value();
    else buffer.open_bytes = bytes;
  }
  std::vector<spirv::launch_site> sites;
  for (const spirv::resolved_launch& l : resolved.launches) {
    auto same = std::ranges::count(resolved.launches, l.symbol, &spirv::resolved_launch::symbol);
    sites.push_back(make_launch(l, same > 1 ? fmt::format("{}_{}", l.symbol, sites.size()) : l.symbol, target, kernel));
  }
  for (std::size_t i = 0; i < sites.size(); ++i) {
    if (!reads_sizes(sites[i])) continue;
    sites[i].table = kernel.sizes.size();
    kernel.launches[i].arguments.push_back({buffer_kind::sizes, 0});
  }
  return sites;
}

}  // namespace kiln
