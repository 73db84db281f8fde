// Compiles the kernels of a program to launches of its plan.
#include <algorithm>
#include <array>

#include "ir/empty_results.hpp"
#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "runtime/plan_builder.hpp"

namespace kiln {
namespace {

void collect_modules(const module& m, std::vector<const module*>& found) {
  if (std::ranges::find(found, &m) != found.end()) return;
  found.push_back(&m);
  for (const instruction& i : m.instructions())
    for (const module* body : i.bodies()) collect_modules(*body, found);
}

}  // namespace

void plan_builder::load_kernels() {
  std::vector<const module*> modules;
  collect_modules(source_.main(), modules);
  for (const module* m : modules)
    for (const instruction& i : m->instructions()) {
      const auto* object = i.op().get_if<code_object>();
      if (!object || called(*object) || gives_no_elements(i)) continue;
      if (object->format != code_format::native)
        throw error(error_kind::not_native, describe_instruction(i) + " is " + std::string(enum_name(object->format)) +
                                                ", not native: finalize the program for this device first");
      if (!device_.runs(object->target))
        throw error(error_kind::unsupported, describe_instruction(i) + " was made for target '" + object->target +
                                                 "', which device " + device_.info().name + " (" +
                                                 device_.info().description +
                                                 ") does not run: finalize the program for this device");
      if (!kernel_index_.try_emplace(object->payload, kernels_.size()).second) continue;
      const auto bytes = source_.kernel(content_hash::from_hex(object->payload));
      if (!is_row_kernel(bytes)) {
        kernels_.push_back(deserialize_native_kernel(bytes));
        set_sizes(kernels_.size() - 1);
        continue;
      }
      row_kernel& rows = row_kernels_.emplace(object->payload, deserialize_row_kernel(bytes)).first->second;
      for (row_version& version : rows.versions) kernels_.push_back(std::move(version.kernel));
    }
  std::vector<const native_kernel*> list;
  for (const native_kernel& k : kernels_) list.push_back(&k);
  plan_.library = device_.load(list);
  plan_.report.kernels = kernels_.size();
}

void plan_builder::set_sizes(std::size_t index) {
  native_kernel& kernel = kernels_[index];
  if (!is_open(kernel)) return;
  if (!options_.sizes)
    throw error(error_kind::unsupported,
                "a kernel for all sizes needs the values of the model's dimensions: open it with a session");
  auto table = std::make_shared<const std::vector<std::int64_t>>(at_sizes(kernel, *options_.sizes));
  if (table->empty()) return;
  const auto bytes = std::as_bytes(std::span(*table));
  size_tables_[index] =
      add_buffer({.place = buffer_place::fixed, .bytes = bytes.size(), .address = bytes.data(), .by_value = true});
  plan_.owners.push_back(table);
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
  plan_.most_arguments = std::max<std::size_t>(plan_.most_arguments, step.argument_count);
  add_step(at.block, at.scope, step, at.what, at.all());
  ++plan_.report.calls;
}

void plan_builder::add_kernel(const placed& at, const code_object& object) {
  const std::size_t index = kernel_index_.at(object.payload);
  const auto rows = row_kernels_.find(object.payload);
  if (rows == row_kernels_.end()) return add_launches(at, {index, object.payload});
  for (const row_blocks& blocks : cover_rows(rows->second, count_rows(at.what, rows->second))) {
    const used_kernel used{index + blocks.version, object.payload + "." + std::to_string(blocks.rows), &rows->second,
                           blocks};
    if (blocks.valid) add_partial_block(at, used);
    else add_launches(at, used);
  }
}

// The last block has fewer rows than the kernel computes. It gets copies of its rows, some of them repeated in place of
// the missing rows, because arbitrary contents could cause a division by zero.
void plan_builder::add_partial_block(const placed& at, used_kernel used) {
  const row_blocks wanted = used.blocks;
  used.blocks.first_row = used.blocks.valid = 0;
  std::vector<buffer_id> inputs = at.inputs, outputs = at.outputs;
  auto bytes = [](std::int64_t rows, const row_part& part) { return static_cast<std::size_t>(rows * part.bytes); };
  auto copy = [&](copy_step step) {
    if (step.bytes) add_step(at.block, at.scope, step, at.what, {step.to, step.from});
  };
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const row_part& part = used.rows->inputs[k];
    if (!part.per_row) continue;
    inputs[k] = add_arena_buffer(at.scope, bytes(wanted.rows, part));
    const std::size_t from = bytes(wanted.first_row, part);
    copy({inputs[k], at.inputs[k], 0, from, bytes(wanted.valid, part)});
    copy({inputs[k], at.inputs[k], bytes(wanted.valid, part), from, bytes(wanted.rows - wanted.valid, part)});
  }
  for (std::size_t o = 0; o < outputs.size(); ++o)
    outputs[o] = add_arena_buffer(at.scope, bytes(wanted.rows, used.rows->outputs[o]));
  add_launches({at.what, at.block, at.scope, inputs, outputs}, used);
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const row_part& part = used.rows->outputs[o];
    copy({at.outputs[o], outputs[o], bytes(wanted.first_row, part), 0, bytes(wanted.valid, part)});
  }
}

// Blocks that run at the same time need separate scratch memory.
std::vector<buffer_id> plan_builder::scratch_buffers(const placed& at, const used_kernel& used,
                                                     const row_launches& blocked, const prepared_kernel& prepared) {
  std::vector<buffer_id> scratch;
  const auto& list = kernels_[used.index].scratch;
  for (std::size_t b = 0; b < list.size(); ++b) {
    const std::int64_t bytes = blocked.scratch[b] ? scratch_stride(list[b]) * used.blocks.count : list[b].bytes;
    if (const auto& found = prepared.scratch[b]; found.owner) {
      scratch.push_back(add_buffer({buffer_place::fixed, found.bytes.size(), 0, found.bytes.data()}));
      plan_.owners.push_back(found.owner);
    } else if (list[b].zeroed) {
      scratch.push_back(add_zeroed_buffer(static_cast<std::size_t>(bytes)));
    } else {
      scratch.push_back(add_arena_buffer(at.scope, static_cast<std::size_t>(bytes)));
    }
  }
  return scratch;
}

void plan_builder::add_launches(const placed& at, const used_kernel& used) {
  const auto& [i, block, s, inputs, outputs] = at;
  const native_kernel& kernel = kernels_[used.index];
  check_launches(i, kernel, device_.info().family);
  prepare_request request{kernel, used.payload, {}, {}, {}, {}};
  for (std::size_t k = 0; k < inputs.size(); ++k)
    request.constants.push_back(used.rows && used.rows->inputs[k].per_row ? nullptr : constants_.literal_of(inputs[k]));
  request.address = [&](std::size_t input) { return constants_.address(inputs[input]); };
  request.hash = [&](std::size_t input) { return constants_.hash_of(*request.constants[input]); };
  request.function = [&](const std::string& symbol) { return plan_.library->find(used.index, symbol); };
  const prepared_kernel prepared = prepare_.run(request);
  const row_launches blocked =
      used.rows ? launches_per_block(*used.rows, kernel)
                : row_launches{std::vector<bool>(kernel.launches.size()), std::vector<bool>(kernel.scratch.size())};
  const std::vector<buffer_id> scratch = scratch_buffers(at, used, blocked, prepared);
  const auto table = size_tables_.find(used.index);
  const std::vector<buffer_id> sizes(1, table == size_tables_.end() ? buffer_id{} : table->second);
  const std::array<const std::vector<buffer_id>*, 4> of_kind{&inputs, &outputs, &scratch, &sizes};
  for (std::size_t l = 0; l < kernel.launches.size(); ++l) {
    const launch& what = kernel.launches[l];
    if (prepared.done[l] || what.grid == 0 || what.grid_y == 0 || what.grid_z == 0) continue;
    std::vector<buffer_id> arguments;
    for (const launch_argument& a : what.arguments) {
      arguments.push_back((*of_kind[static_cast<std::size_t>(a.kind)])[a.index]);
      plan_.written.push_back(a.kind == buffer_kind::output || a.kind == buffer_kind::scratch);
    }
    launch_step step{plan_.library->find(used.index, what.symbol),
                     what.grid,
                     what.grid_y,
                     what.grid_z,
                     what.block,
                     what.lds_bytes,
                     static_cast<std::uint32_t>(plan_.arguments.size()),
                     static_cast<std::uint32_t>(arguments.size()),
                     static_cast<std::uint32_t>(plan_.tensor_maps.size()),
                     static_cast<std::uint32_t>(what.tensor_maps.size()),
                     what.waits};
    for (const tensor_map& map : what.tensor_maps)
      plan_.tensor_maps.push_back({step.first_argument + map.argument, map});
    plan_.arguments.insert(plan_.arguments.end(), arguments.begin(), arguments.end());
    if (blocked.launches[l]) {
      step.blocks = used.blocks.count;
      step.first_part = static_cast<std::uint32_t>(plan_.block_parts.size());
      for (const launch_argument& a : what.arguments)
        plan_.block_parts.push_back(part_of(a, *used.rows, kernel, blocked, used.blocks));
    }
    plan_.most_arguments = std::max(
        plan_.most_arguments, arguments.size() * static_cast<std::size_t>(std::max<std::int64_t>(1, step.blocks)));
    add_step(block, s, step, i, arguments);
    ++plan_.report.launches;
  }
}

}  // namespace kiln
