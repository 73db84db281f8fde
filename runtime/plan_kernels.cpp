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
      if (kernel_index_.try_emplace(object->payload, kernels_.size()).second)
        kernels_.push_back(deserialize_native_kernel(source_.kernel(content_hash::from_hex(object->payload))));
    }
  std::vector<const native_kernel*> list;
  for (const native_kernel& k : kernels_) list.push_back(&k);
  plan_.library = device_.load(list);
  plan_.report.kernels = kernels_.size();
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
  const auto& [i, block, s, inputs, outputs] = at;
  std::size_t index = kernel_index_.at(object.payload);
  const native_kernel& kernel = kernels_[index];
  check_launches(i, kernel, device_.info().family);
  prepare_request request{kernel, object.payload, {}, {}, {}, {}};
  for (buffer_id id : inputs) request.constants.push_back(constants_.literal_of(id));
  request.address = [&](std::size_t input) { return constants_.address(inputs[input]); };
  request.hash = [&](std::size_t input) { return constants_.hash_of(*request.constants[input]); };
  request.function = [&](const std::string& symbol) { return plan_.library->find(index, symbol); };
  prepared_kernel prepared = prepare_.run(request);
  std::vector<buffer_id> scratch;
  for (std::size_t b = 0; b < kernel.scratch.size(); ++b) {
    if (const auto& found = prepared.scratch[b]; found.owner) {
      scratch.push_back(add_buffer({buffer_place::fixed, found.bytes.size(), 0, found.bytes.data()}));
      plan_.owners.push_back(found.owner);
    } else if (kernel.scratch[b].zeroed) {
      scratch.push_back(add_zeroed_buffer(static_cast<std::size_t>(kernel.scratch[b].bytes)));
    } else {
      scratch.push_back(add_arena_buffer(s, static_cast<std::size_t>(kernel.scratch[b].bytes)));
    }
  }
  const std::array<const std::vector<buffer_id>*, 3> of_kind{&inputs, &outputs, &scratch};
  for (std::size_t l = 0; l < kernel.launches.size(); ++l) {
    const launch& what = kernel.launches[l];
    if (prepared.done[l] || what.grid == 0 || what.grid_y == 0 || what.grid_z == 0) continue;
    std::vector<buffer_id> arguments;
    for (const launch_argument& a : what.arguments) {
      arguments.push_back((*of_kind[static_cast<std::size_t>(a.kind)])[a.index]);
      plan_.written.push_back(a.kind != buffer_kind::input);
    }
    launch_step step{plan_.library->find(index, what.symbol),
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
    plan_.most_arguments = std::max(plan_.most_arguments, arguments.size());
    add_step(block, s, step, i, arguments);
    ++plan_.report.launches;
  }
}

}  // namespace kiln
