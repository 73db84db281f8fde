#include "runtime/launch_check.hpp"

#include <array>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"

namespace kiln {
namespace {

// Launch limits that every GPU and both drivers accept.
constexpr std::int64_t most_groups_y = 65535, most_items = 1024, most_lds_bytes = 1 << 20;

// The bytes of an argument whose index has been checked.
std::size_t bytes_of(const launch_argument& a, const instruction& i, const native_kernel& kernel) {
  switch (a.kind) {
    case buffer_kind::input: return i.inputs()[a.index].type().bytes();
    case buffer_kind::output: return i.outputs()[a.index].bytes();
    case buffer_kind::scratch: break;
    case buffer_kind::sizes: return kernel.sizes.size() * sizeof(std::int64_t);
  }
  return static_cast<std::size_t>(kernel.scratch[a.index].bytes);
}

}  // namespace

double end_of(const tensor_map& map) { return end_of(map, map.dims.back()); }

double end_of(const tensor_map& map, std::int64_t outer) {
  // ir/native_kernel.cpp limits the sizes, so this does not overflow.
  const auto size = [&](std::size_t d) { return static_cast<double>(d + 1 == map.dims.size() ? outer : map.dims[d]); };
  double end = size(0) * storage_bits(map.type) / 8;
  for (std::size_t d = 1; d < map.dims.size(); ++d) end += (size(d) - 1) * static_cast<double>(map.strides[d - 1]);
  return end;
}

std::string describe_instruction(const instruction& i) {
  const auto* kernel = i.op().get_if<code_object>();
  std::string text = kernel ? "kernel '" + kernel->symbol + "'" : "'" + std::string(i.op().name()) + "'";
  return i.origin().empty() ? text : text + " (" + i.origin() + ")";
}

void check_launches(const instruction& i, const native_kernel& kernel, std::string_view family) {
  auto require = [&](bool holds, const std::string& what) {
    if (!holds)
      throw error(error_kind::corrupted,
                  describe_instruction(i) + ": its native kernel " + what + "; finalize the program again");
  };
  for (const scratch_buffer& b : kernel.scratch)
    require(b.bytes >= 0 && static_cast<std::size_t>(b.bytes) <= most_scratch_bytes,
            "asks for " + std::to_string(b.bytes) + " bytes of scratch memory");
  const std::array<std::size_t, 4> counts{i.inputs().size(), i.outputs().size(), kernel.scratch.size(),
                                          std::size_t{!kernel.sizes.empty()}};
  for (const launch& l : kernel.launches) {
    require(l.grid >= 0 && l.grid_y >= 0 && l.grid_z >= 0, "has a negative grid");
    require(!l.copies || (l.copies->input < i.inputs().size() && l.copies->output < i.outputs().size()),
            "copies an input or output that does not exist");
    if (family == "cpu") {
      require(l.grid_y == 1 && l.grid_z == 1, "has a grid of several dimensions, which a CPU does not run");
      require(l.tensor_maps.empty(), "has tensor maps, which a CPU does not have");
    } else {
      require(l.grid <= most_groups && l.grid_y <= most_groups_y && l.grid_z <= most_groups_y,
              "has more workgroups than a GPU supports in a launch");
      require(l.block <= most_items && l.lds_bytes <= most_lds_bytes, "has larger workgroups than a GPU supports");
    }
    for (const launch_argument& a : l.arguments)
      require(static_cast<std::size_t>(a.kind) < counts.size() && a.index < counts[static_cast<std::size_t>(a.kind)],
              "names an argument that the instruction does not have");
    for (const tensor_map& map : l.tensor_maps)
      require(
          map.argument < l.arguments.size() &&
              (map.open_outer || end_of(map) <= static_cast<double>(bytes_of(l.arguments[map.argument], i, kernel))),
          "describes a tensor that is larger than its buffer");
  }
}

}  // namespace kiln
