#include "runtime/template_parts.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "runtime/launch_check.hpp"

namespace kiln {

prepared_kernel template_parts::prepared(std::size_t kernel, const std::string& payload,
                                         const std::vector<buffer_id>& inputs, const row_kernel* rows,
                                         std::function<bool(std::size_t launch)> needed) {
  prepare_request request{kernels[kernel], payload, {}, {}, {}, {}, std::move(needed)};
  for (std::size_t k = 0; k < inputs.size(); ++k)
    request.constants.push_back(rows && rows->inputs[k].per_row ? nullptr : constants.literal_of(inputs[k]));
  request.address = [&](std::size_t input) { return constants.temporary_address(inputs[input]); };
  request.hash = [&](std::size_t input) { return constants.hash_of(*request.constants[input]); };
  request.function = [&](const std::string& symbol) { return base.library->find(kernel, symbol); };
  prepared_kernel result = prepare.run(request);
  constants.release();
  return result;
}

void template_parts::prepare_late(std::uint32_t number, std::span<const buffer_id> arguments, plan& filled) {
  late_kernel& of = late[number];
  const auto is_missing = [&](std::size_t scratch) {
    return of.missing[scratch] && std::ranges::find(arguments, of.scratch[scratch]) != arguments.end();
  };
  std::vector<bool> wanted(of.scratch.size());
  for (std::size_t b = 0; b < wanted.size(); ++b) wanted[b] = is_missing(b);
  if (std::ranges::none_of(wanted, std::identity())) return;
  const auto& launches = kernels[of.kernel].launches;
  const prepared_kernel made = prepared(of.kernel, of.payload, of.inputs, nullptr, [&](std::size_t l) {
    return std::ranges::any_of(launches[l].arguments, [&](const launch_argument& a) {
      return a.kind == buffer_kind::scratch && wanted[a.index];
    });
  });
  for (std::size_t b = 0; b < wanted.size(); ++b) {
    if (!of.missing[b] || !made.scratch[b].owner) continue;
    of.missing[b] = false;
    prepared_owners->push_back(made.scratch[b].owner);
    base.buffers[of.scratch[b]].address = filled.buffers[of.scratch[b]].address = made.scratch[b].bytes.data();
  }
}

bool does_nothing(const template_parts& parts, const template_step& step, const std::vector<std::int64_t>& sizes) {
  if (step.grid != size_table::none) return sizes[step.grid] == 0;
  const auto* copy = std::get_if<copy_step>(&step.what);
  if (!copy || copy->bytes || step.rows != size_table::none) return false;
  const size_table::index size = parts.buffer_sizes[copy->to];
  return size != size_table::none && sizes[size] == 0;
}

bool set_maps(const template_parts& parts, const std::vector<std::int64_t>& sizes, plan& to) {
  constexpr std::int64_t most_dim = std::int64_t{1} << 32, most_box = 256;
  const auto at = [&](size_table::index i) { return i == size_table::none ? 0 : sizes[i]; };
  const auto is_used = [&](const open_map& open) { return open.grid == size_table::none || sizes[open.grid] != 0; };
  for (const open_map& open : parts.maps) {
    if (!is_used(open)) continue;
    const plan_tensor_map& map = to.tensor_maps[open.map];
    const bool open_outer = open.outer != size_table::none, open_rows = open.rows != size_table::none;
    const std::int64_t outer = open_outer ? at(open.outer) : map.form->dims.back();
    const buffer_id buffer = to.arguments[map.argument];
    const size_table::index size = parts.buffer_sizes[buffer];
    const double bytes =
        size == size_table::none ? static_cast<double>(to.buffers[buffer].bytes) : static_cast<double>(sizes[size]);
    if (outer < 1 || outer > most_dim || (open_rows && (at(open.rows) < 1 || at(open.rows) > most_box)) ||
        end_of(*map.form, outer) > bytes)
      return false;
  }
  for (const open_map& open : parts.maps) {
    plan_tensor_map& map = to.tensor_maps[open.map];
    if (!is_used(open) || (map.outer == at(open.outer) && map.rows == at(open.rows))) continue;
    map.outer = at(open.outer), map.rows = at(open.rows);
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
  to.early.resize(to.arguments.size());
  for (std::uint32_t early : what.early_arguments) to.early[step.first_argument + early] = true;
  for (const tensor_map& map : what.tensor_maps)
    to.tensor_maps.push_back({step.first_argument + map.argument, 0, std::make_shared<const tensor_map>(map)});
  return step;
}

}  // namespace kiln
