// Compiles the kernels of a program to launches of its plans.
#include <algorithm>
#include <functional>
#include <limits>

#include "ir/empty_results.hpp"
#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "runtime/alias.hpp"
#include "runtime/plan_builder.hpp"

namespace kiln {
namespace {

void collect_modules(const module& m, std::vector<const module*>& found) {
  if (std::ranges::find(found, &m) != found.end()) return;
  found.push_back(&m);
  for (const instruction& i : m.instructions())
    for (const module* body : i.bodies()) collect_modules(*body, found);
}

// Puts the numbers of static dims in place.
void settle(native_kernel& kernel) {
  for (launch& l : kernel.launches)
    if (l.open_grid && l.open_grid->is_static()) l.grid = l.open_grid->value(), l.open_grid.reset();
  for (scratch_buffer& s : kernel.scratch)
    if (s.open_bytes && s.open_bytes->is_static()) s.bytes = s.open_bytes->value(), s.open_bytes.reset();
}

bool launches_nothing(const launch& l) { return (l.grid == 0 && !l.open_grid) || l.grid_y == 0 || l.grid_z == 0; }

}  // namespace

void plan_builder::load_kernels() {
  std::vector<const module*> modules;
  collect_modules(source_.main(), modules);
  for (const module* m : modules)
    for (const instruction& i : m->instructions())
      if (const auto* object = i.op().get_if<code_object>(); object && !called(*object) && !gives_no_elements(i))
        load_kernel(i, *object);
  std::vector<const native_kernel*> list;
  for (const native_kernel& k : parts_->kernels) list.push_back(&k);
  plan_.library = device_.load(list);
  plan_.report.kernels = parts_->kernels.size();
}

void plan_builder::load_kernel(const instruction& i, const code_object& object) {
  if (object.format != code_format::native)
    throw error(error_kind::not_native, describe_instruction(i) + " is " + std::string(enum_name(object.format)) +
                                            ", not native: finalize the program for this device first");
  if (!device_.runs(object.target))
    throw error(error_kind::unsupported, describe_instruction(i) + " was made for target '" + object.target +
                                             "', which device " + device_.info().name + " (" +
                                             device_.info().description +
                                             ") does not run: finalize the program for this device");
  auto& kernels = parts_->kernels;
  if (!kernel_index_.try_emplace(object.payload, kernels.size()).second) return;
  const auto bytes = source_.kernel(content_hash::from_hex(object.payload));
  if (!is_row_kernel(bytes)) {
    kernels.push_back(deserialize_native_kernel(bytes));
    set_sizes(kernels.size() - 1);
    return;
  }
  row_kernel& rows = parts_->row_kernels.emplace(object.payload, deserialize_row_kernel(bytes)).first->second;
  for (row_version& version : rows.versions) kernels.push_back(std::move(version.kernel));
}

void plan_builder::set_sizes(std::size_t index) {
  native_kernel& kernel = parts_->kernels[index];
  if (!is_open(kernel)) return;
  if (!open_ && !options_.sizes)
    throw error(error_kind::unsupported,
                "a kernel for all sizes needs the values of the model's dimensions: open it with a session");
  if (!open_) {
    if (!serves(kernel, *options_.sizes))
      throw error(error_kind::unsupported,
                  "a kernel for all sizes does not serve these: its offsets have 32 bits and they need more, or an "
                  "operation in it does not fit them; open the portable file");
    const std::vector<std::int64_t> values = at_sizes(kernel, *options_.sizes);
    kernel.sizes.assign(values.begin(), values.end());
    kernel.bounded_sizes.clear();
    for (launch& l : kernel.launches) {
      l.open_grid.reset();
      for (tensor_map& map : l.tensor_maps) map.open_outer.reset(), map.open_rows.reset();
    }
    for (scratch_buffer& s : kernel.scratch) s.open_bytes.reset();
  }
  settle(kernel);
  size_table& sizes = parts_->sizes;
  open_table table;
  for (const dim& d : kernel.sizes) table.sizes.push_back(sizes.add(d));
  if (!kernel.bounded_sizes.empty()) {
    auto& bounded = parts_->bounded;
    for (const dim& d : kernel.bounded_sizes) bounded.push_back(sizes.add(d));
    bounded.insert(bounded.end(), table.sizes.begin(), table.sizes.end());
    for (const launch& l : kernel.launches)
      if (l.open_grid) bounded.push_back(sizes.add(*l.open_grid));
  }
  if (table.sizes.empty()) return;
  table.buffer = size_tables_[index] =
      add_buffer({.place = buffer_place::fixed, .bytes = table.sizes.size() * sizeof(std::int64_t), .by_value = true});
  parts_->tables.push_back(std::move(table));
}

bool plan_builder::called(const code_object& object) const {
  return std::ranges::find(options_.calls, object.symbol, &foreign_call::symbol) != options_.calls.end();
}

void plan_builder::add_call(const placed& at, const code_object& object) {
  auto call = static_cast<std::uint32_t>(std::ranges::find(options_.calls, object.symbol, &foreign_call::symbol) -
                                         options_.calls.begin());
  call_step step{call, static_cast<std::uint32_t>(plan_.arguments.size()), static_cast<std::uint32_t>(at.inputs.size()),
                 static_cast<std::uint32_t>(at.inputs.size() + at.outputs.size())};
  for (buffer_id id : at.inputs) plan_.arguments.push_back(id), plan_.written.push_back(false);
  for (buffer_id id : at.outputs) plan_.arguments.push_back(id), plan_.written.push_back(true);
  plan_.early.resize(plan_.arguments.size());
  add_step(at.block, at.scope, step, at.what, at.all());
}

void plan_builder::add_rows(const placed& at, const code_object& object, const row_kernel& rows) {
  const std::size_t first = kernel_index_.at(object.payload);
  for (std::size_t v = 0; v < rows.versions.size(); ++v)
    check_launches(at.what, parts_->kernels[first + v], device_.info().family);
  rows_use use{describe_instruction(at.what), first, object.payload, &rows, at.inputs, at.outputs, at.scope};
  template_step& step = add_step(at.block, at.scope, copy_step{}, at.what, at.all());
  step.rows = static_cast<std::uint32_t>(parts_->row_uses.size());
  parts_->row_uses.push_back(std::move(use));
}

std::vector<buffer_id> plan_builder::scratch_buffers(const placed& at, const native_kernel& kernel,
                                                     const prepared_kernel& prepared) {
  std::vector<buffer_id> scratch;
  for (std::size_t b = 0; b < kernel.scratch.size(); ++b) {
    const scratch_buffer& wanted = kernel.scratch[b];
    buffer_size size{static_cast<std::size_t>(wanted.bytes)};
    if (wanted.open_bytes) size = {0, parts_->sizes.add(*wanted.open_bytes)};
    if (const auto& found = prepared.scratch[b]; found.owner) {
      scratch.push_back(add_buffer({buffer_place::fixed, found.bytes.size(), 0, found.bytes.data()}));
      plan_.owners.push_back(found.owner);
    } else if (prepared.later[b]) {
      scratch.push_back(add_buffer({buffer_place::fixed, size.bytes, 0, nullptr}));
    } else if (wanted.zeroed) {
      scratch.push_back(add_buffer({buffer_place::zeroed, size.bytes, 0, nullptr}, size.open));
    } else {
      scratch.push_back(parts_->scratch.emplace_back(add_arena_buffer(at.scope, size)));
    }
  }
  return scratch;
}

void plan_builder::prepare_largest_first(const module& m) {
  constexpr std::size_t least_bytes = std::size_t{64} << 20;
  constexpr buffer_id no_constant = std::numeric_limits<buffer_id>::max();
  struct use {
    std::size_t bytes = 0;
    const code_object* object = nullptr;
    std::vector<buffer_id> inputs{};
  };
  std::vector<use> uses;
  for (const instruction& i : m.instructions()) {
    use found{.object = i.op().get_if<code_object>()};
    if (!found.object || called(*found.object) || gives_no_elements(i) ||
        parts_->row_kernels.contains(found.object->payload))
      continue;
    const auto& launches = parts_->kernels[kernel_index_.at(found.object->payload)].launches;
    if (std::ranges::none_of(launches, &launch::prepare)) continue;
    for (value v : i.inputs()) {
      const literal* data = module::constant(alias_root(v));
      found.inputs.push_back(data ? constant_buffer(*data) : no_constant);
      if (data) found.bytes = std::max(found.bytes, data->byte_count());
    }
    if (found.bytes >= least_bytes) uses.push_back(std::move(found));
  }
  std::ranges::stable_sort(uses, std::greater(), &use::bytes);
  for (const use& each : uses)
    parts_->prepared(kernel_index_.at(each.object->payload), each.object->payload, each.inputs, nullptr);
}

// From here on, the table of sizes has the expressions.
void plan_builder::add_open_maps(const launch_step& step, size_table::index grid) {
  for (std::uint32_t m = step.first_map; m < step.first_map + step.map_count; ++m) {
    const tensor_map& map = *plan_.tensor_maps[m].form;
    if (!map.open_outer && !map.open_rows) continue;
    open_map& added = parts_->maps.emplace_back(open_map{.map = m, .grid = grid});
    if (map.open_outer) added.outer = parts_->sizes.add(*map.open_outer);
    if (map.open_rows) added.rows = parts_->sizes.add(*map.open_rows);
    tensor_map form = map;
    form.open_outer.reset(), form.open_rows.reset();
    plan_.tensor_maps[m].form = std::make_shared<const tensor_map>(std::move(form));
  }
}

// On the host, weights are packed for an algorithm when the first sizes use it: a launch may have an empty grid at
// others.
prepared_kernel plan_builder::prepare_needed(const placed& at, std::size_t index, const std::string& payload) {
  const auto& launches = parts_->kernels[index].launches;
  const bool varies = std::ranges::any_of(launches, [](const launch& l) { return l.open_grid.has_value(); });
  if (!device_.info().host_memory || !varies) return parts_->prepared(index, payload, at.inputs, nullptr);
  return parts_->prepared(index, payload, at.inputs, nullptr,
                          [&](std::size_t l) { return !launches[l].open_grid && !launches_nothing(launches[l]); });
}

void plan_builder::add_kernel(const placed& at, const code_object& object) {
  const auto rows = parts_->row_kernels.find(object.payload);
  if (rows != parts_->row_kernels.end()) return add_rows(at, object, rows->second);
  const std::size_t index = kernel_index_.at(object.payload);
  const native_kernel& kernel = parts_->kernels[index];
  check_launches(at.what, kernel, device_.info().family);
  const prepared_kernel prepared = prepare_needed(at, index, object.payload);
  const std::vector<buffer_id> scratch = scratch_buffers(at, kernel, prepared);
  const bool late = std::ranges::any_of(prepared.later, std::identity());
  if (late) parts_->late.push_back({index, object.payload, at.inputs, scratch, prepared.later});
  const auto table = size_tables_.find(index);
  const launch_buffers buffers{at.inputs, at.outputs, scratch, table == size_tables_.end() ? 0 : table->second};
  for (std::size_t l = 0; l < kernel.launches.size(); ++l) {
    const launch& what = kernel.launches[l];
    if (prepared.done[l] || launches_nothing(what)) continue;
    if (what.copies && at.outputs[what.copies->output] == at.inputs[what.copies->input]) continue;
    const launch_step step = append_launch(plan_, what, plan_.library->find(index, what.symbol), buffers);
    const auto first = plan_.arguments.begin() + step.first_argument;
    template_step& added = add_step(at.block, at.scope, step, at.what, {first, first + step.argument_count});
    if (what.open_grid) added.grid = parts_->sizes.add(*what.open_grid);
    if (late) added.late = static_cast<std::uint32_t>(parts_->late.size() - 1);
    add_open_maps(step, added.grid);
  }
}

}  // namespace kiln
