#include "runtime/template_parts.hpp"

#include <array>
#include <span>

#include "runtime/launch_check.hpp"

namespace kiln {

prepared_kernel template_parts::prepared(std::size_t kernel, const std::string& payload,
                                         const std::vector<buffer_id>& inputs, const row_kernel* rows) {
  prepare_request request{kernels[kernel], payload, {}, {}, {}, {}};
  for (std::size_t k = 0; k < inputs.size(); ++k)
    request.constants.push_back(rows && rows->inputs[k].per_row ? nullptr : constants.literal_of(inputs[k]));
  request.address = [&](std::size_t input) { return constants.temporary_address(inputs[input]); };
  request.hash = [&](std::size_t input) { return constants.hash_of(*request.constants[input]); };
  request.function = [&](const std::string& symbol) { return base.library->find(kernel, symbol); };
  prepared_kernel result = prepare.run(request);
  constants.release();
  return result;
}

bool set_maps(const template_parts& parts, const std::vector<std::int64_t>& sizes, plan& to) {
  constexpr std::int64_t most_dim = std::int64_t{1} << 32, most_box = 256;
  std::vector<tensor_map> changed;
  for (const open_map& open : parts.maps) {
    tensor_map& map = changed.emplace_back(to.tensor_maps[open.map].map);
    if (open.outer != size_table::none) map.dims.back() = sizes[open.outer];
    if (open.rows != size_table::none) map.box[1] = sizes[open.rows];
    const buffer_id buffer = to.arguments[to.tensor_maps[open.map].argument];
    const size_table::index size = parts.buffer_sizes[buffer];
    const double bytes =
        size == size_table::none ? static_cast<double>(to.buffers[buffer].bytes) : static_cast<double>(sizes[size]);
    if (map.dims.back() < 1 || map.dims.back() > most_dim || (open.rows != size_table::none && map.box[1] < 1) ||
        (open.rows != size_table::none && map.box[1] > most_box) || end_of(map) > bytes)
      return false;
  }
  for (std::size_t i = 0; i < changed.size(); ++i) {
    plan_tensor_map& map = to.tensor_maps[parts.maps[i].map];
    if (map.map == changed[i]) continue;
    map.map = std::move(changed[i]);
    ++map.revision;
  }
  return true;
}

launch_step append_launch(plan& to, const launch& what, kernel_handle function, const launch_buffers& buffers) {
  launch_step step{function,
                   what.grid,
                   what.grid_y,
                   what.grid_z,
                   what.block,
                   what.lds_bytes,
                   static_cast<std::uint32_t>(to.arguments.size()),
                   static_cast<std::uint32_t>(what.arguments.size()),
                   static_cast<std::uint32_t>(to.tensor_maps.size()),
                   static_cast<std::uint32_t>(what.tensor_maps.size()),
                   what.waits};
  const std::array<std::span<const buffer_id>, 4> of_kind{buffers.inputs, buffers.outputs, buffers.scratch,
                                                          std::span(&buffers.table, 1)};
  for (const launch_argument& a : what.arguments) {
    to.arguments.push_back(of_kind[static_cast<std::size_t>(a.kind)][a.index]);
    to.written.push_back(a.kind == buffer_kind::output || a.kind == buffer_kind::scratch);
  }
  for (std::uint32_t early : what.early_arguments)
    step.waits &= to.buffers[to.arguments[step.first_argument + early]].place == buffer_place::fixed;
  for (const tensor_map& map : what.tensor_maps) to.tensor_maps.push_back({step.first_argument + map.argument, map});
  return step;
}

}  // namespace kiln
