#include "runtime/plan_series.hpp"

#include <algorithm>
#include <utility>

#include "runtime/launch_check.hpp"
#include "runtime/plan_filler.hpp"
#include "runtime/row_blocks.hpp"
#include "runtime/template_parts.hpp"

namespace kiln {

bool within_room(const template_parts& parts, const std::vector<std::int64_t>& values,
                 const std::vector<std::int64_t>& room) {
  return std::ranges::all_of(parts.buffer_sizes, [&](size_table::index i) {
    // Empty scratch memory has no address.
    return i == size_table::none || (values[i] <= room[i] && (values[i] == 0) == (room[i] == 0));
  });
}

plan_series::plan_series(template_parts& parts, kiln::plan made, std::vector<std::int64_t> sizes,
                         std::vector<std::int64_t> room)
    : parts_(parts),
      plan_(std::make_shared<kiln::plan>(std::move(made))),
      shared_(plan_),
      sizes_(std::move(sizes)),
      room_(std::move(room)) {
  find_moving_steps();
}

// The steps of a plan are those of the template without those that do nothing, and with several for a use of a row
// kernel.
void plan_series::find_moving_steps() {
  for (std::uint32_t b = 0; b < plan_->blocks.size(); ++b) {
    const auto& steps = plan_->blocks[b].steps;
    std::uint32_t s = 0;
    for (const template_step& from : parts_.blocks[b].steps) {
      if (does_nothing(parts_, from, sizes_)) continue;
      if (from.rows != size_table::none) {
        while (s < steps.size() && steps[s].instruction == from.instruction) ++s;
        continue;
      }
      moving_step found{.block = b, .step = s++, .grid = from.grid};
      if (const auto* launch = std::get_if<launch_step>(&from.what)) {
        for (std::uint32_t a = 0; a < launch->argument_count; ++a)
          for (std::uint32_t t = 0; t < parts_.tables.size(); ++t)
            if (parts_.tables[t].buffer == plan_->arguments[launch->first_argument + a]) found.table = t;
      } else if (const auto* copy = std::get_if<copy_step>(&from.what); copy && copy->bytes == 0) {
        found.copied = copy->to, found.copies = true;
      }
      const bool moves = found.grid != size_table::none || found.table != size_table::none || found.copies;
      if (moves) moving_.push_back(found);
    }
  }
}

bool plan_series::same_rows(const std::vector<std::int64_t>& values) const {
  return std::ranges::all_of(parts_.row_uses, [&](const rows_use& use) {
    const auto same = [&](buffer_id id) {
      const size_table::index i = parts_.buffer_sizes[id];
      return i == size_table::none || values[i] == sizes_[i];
    };
    return (std::ranges::all_of(use.inputs, same) && std::ranges::all_of(use.outputs, same)) ||
           only_writes_rows(use, *plan_);
  });
}

bool plan_series::fits(const std::vector<std::int64_t>& values) const {
  if (!valid_sizes(parts_, values) || !within_room(parts_, values, room_) || !same_rows(values)) return false;
  const std::int64_t most = parts_.target.info().host_memory ? INT64_MAX : most_groups;
  for (const template_block& block : parts_.blocks)
    for (const template_step& step : block.steps) {
      if (step.size != size_table::none && values[step.size] != sizes_[step.size]) return false;
      if (step.grid != size_table::none &&
          ((values[step.grid] == 0) != (sizes_[step.grid] == 0) || values[step.grid] < 0 || values[step.grid] > most))
        return false;
    }
  return true;
}

bool plan_series::move_to(const dim_bindings& sizes) {
  auto values = parts_.sizes.evaluate(sizes);
  if (!values || !fits(*values) || !set_maps(parts_, *values, *plan_)) return false;
  apply(*values);
  sizes_ = std::move(*values);
  return true;
}

void plan_series::apply(const std::vector<std::int64_t>& values) {
  const auto changed = [&](size_table::index i) { return i != size_table::none && values[i] != sizes_[i]; };
  for (std::size_t b = 0; b < parts_.buffer_sizes.size(); ++b)
    if (const auto i = parts_.buffer_sizes[b]; changed(i))
      plan_->buffers[b].bytes = static_cast<std::size_t>(values[i]);
  for (const open_port& open : parts_.ports) {
    const plan_buffer& buffer = plan_->buffers[open.buffer];
    plan_port& port = (buffer.place == buffer_place::input ? plan_->inputs : plan_->outputs)[buffer.offset];
    port.bytes = buffer.bytes;
    for (std::size_t d = 0; d < open.dims.size(); ++d)
      port.dims[d] = values[open.dims[d]], port.type.dims[d] = port.dims[d];
  }
  std::size_t next = 0;
  std::vector<bool> moved(parts_.tables.size());
  for (std::size_t t = 0; t < parts_.tables.size(); ++t)
    for (size_table::index i : parts_.tables[t].sizes) {
      if (changed(i)) (*plan_->open_sizes)[next] = values[i], moved[t] = true;
      ++next;
    }
  for (const moving_step& m : moving_) {
    plan_step& step = plan_->blocks[m.block].steps[m.step];
    if (changed(m.grid)) std::get<launch_step>(step.what).grid = values[m.grid];
    if (changed(m.grid) || (m.table != size_table::none && moved[m.table]) ||
        (m.copies && changed(parts_.buffer_sizes[m.copied])))
      ++step.revision;
  }
}

}  // namespace kiln
