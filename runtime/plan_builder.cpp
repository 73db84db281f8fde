#include "runtime/plan_builder.hpp"

#include <algorithm>

#include "ir/empty_results.hpp"
#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "runtime/alias.hpp"

namespace kiln {
namespace {

std::size_t element_alignment(element_type type) {
  return std::max<std::size_t>(1, static_cast<std::size_t>(storage_bits(type)) / 8);
}

}  // namespace

std::size_t static_bytes_of(value v) {
  if (!v.type().is_static())
    throw error(error_kind::usage, describe_instruction(*v.producer) + " has the symbolic shape " + v.type().str() +
                                       ": bind every dimension before the program is loaded");
  return v.type().bytes();
}

std::vector<buffer_id> plan_builder::placed::all() const {
  std::vector<buffer_id> ids = inputs;
  ids.insert(ids.end(), outputs.begin(), outputs.end());
  return ids;
}

plan plan_builder::build() {
  load_kernels();
  const module& main = source_.main();
  std::vector<buffer_id> inputs, outputs;
  for (value v : main.parameters()) {
    inputs.push_back(add_buffer({buffer_place::input, static_bytes_of(v), plan_.inputs.size(), nullptr}));
    plan_.inputs.push_back(port(module::parameter_name(v), v.type(), inputs.back()));
  }
  for (std::size_t i = 0; i < main.outputs().size(); ++i) {
    value v = main.outputs()[i];
    outputs.push_back(add_buffer({buffer_place::output, static_bytes_of(v), i, nullptr}));
    plan_.outputs.push_back(port(main.output_names()[i], v.type(), outputs.back()));
    plan_.outputs.back().bounded = bounded_axes(main, v);
  }
  add_module(main, inputs, outputs, SIZE_MAX);
  place_arena();
  constants_.keep();
  plan_.calls.assign(options_.calls.begin(), options_.calls.end());
  device_.synchronize();  // uploaded and prepared data must be visible to every stream
  report();
  return std::move(plan_);
}

buffer_id plan_builder::add_buffer(plan_buffer b) {
  plan_.buffers.push_back(b);
  homes_.push_back({SIZE_MAX, 0});
  return static_cast<buffer_id>(plan_.buffers.size() - 1);
}

buffer_id plan_builder::add_arena_buffer(std::size_t s, std::size_t bytes) {
  buffer_id id = add_buffer({buffer_place::arena, bytes, 0, nullptr});
  homes_[id] = {s, scopes_[s].requests.size()};
  std::size_t alignment = device_.info().alignment;
  scopes_[s].requests.push_back({(bytes + alignment - 1) / alignment * alignment, INT64_MAX, -1});
  return id;
}

// Never shares memory, not even with other zeroed buffers, because kernels may run concurrently.
buffer_id plan_builder::add_zeroed_buffer(std::size_t bytes) {
  buffer_id id = add_buffer({buffer_place::zeroed, bytes, plan_.zeroed_bytes, nullptr});
  std::size_t alignment = device_.info().alignment;
  plan_.zeroed_bytes += (bytes + alignment - 1) / alignment * alignment;
  return id;
}

// The instruction that holds a body keeps buffers of outer scopes alive during the body.
void plan_builder::touch(std::size_t s, buffer_id id, std::int64_t step) {
  auto [owner, request] = homes_[id];
  if (owner != s) return;
  arena_request& r = scopes_[s].requests[request];
  r.first = std::min(r.first, step);
  r.last = std::max(r.last, step);
}

plan_port plan_builder::port(const std::string& name, const shape& type, buffer_id id) {
  return {name, type, type.static_dims(), type.bytes(), element_alignment(type.type), id};
}

std::vector<bounded_axis> plan_builder::bounded_axes(const module& main, value v) {
  std::vector<bounded_axis> axes;
  for (; const auto* op = v.producer->op().get_if<bounded>(); v = v.producer->inputs()[0]) {
    auto count = std::ranges::find(main.outputs(), v.producer->inputs()[1]);
    if (count == main.outputs().end())
      throw error(error_kind::invalid_model, describe_instruction(*v.producer) + " has a count that is no output");
    axes.push_back({static_cast<std::size_t>(op->axis), static_cast<std::size_t>(count - main.outputs().begin())});
  }
  return axes;
}

buffer_id plan_builder::constant_buffer(const literal& data) {
  if (auto found = constants_.find(data)) return *found;
  buffer_id id = add_buffer({buffer_place::fixed, data.bytes().size(), 0, nullptr});
  constants_.add(id, data);
  return id;
}

// `inputs` are the buffers of the parameters. The results must end up in the buffers `outputs`.
std::uint32_t plan_builder::add_module(const module& m, const std::vector<buffer_id>& inputs,
                                       const std::vector<buffer_id>& outputs, std::size_t parent) {
  auto block = static_cast<std::uint32_t>(plan_.blocks.size());
  plan_.blocks.push_back({m.name(), {}});
  std::size_t s = scopes_.size();
  scopes_.push_back({{}, parent, 0, {}});
  if (m.parameters().size() != inputs.size() || m.outputs().size() != outputs.size())
    throw error(error_kind::invalid_model,
                "module '" + m.name() + "' has " + std::to_string(m.parameters().size()) + " parameters and " +
                    std::to_string(m.outputs().size()) + " outputs, the instruction that holds it " +
                    std::to_string(inputs.size()) + " and " + std::to_string(outputs.size()));
  // A result is computed directly into the first output buffer that needs it. Parameters, constants and further uses of
  // the result are copied.
  value_map destinations;
  std::vector<bool> direct(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    value root = alias_root(m.outputs()[i]);
    bool computed = !root.producer->op().is<parameter>() && !root.producer->op().is<constant>();
    direct[i] = computed && destinations.try_emplace(root, outputs[i]).second;
  }
  value_map values;
  std::size_t next_input = 0;
  for (const instruction& i : m.instructions()) {
    if (i.op().is<parameter>()) {
      values[value{const_cast<instruction*>(&i), 0}] = inputs[next_input++];
    } else if (const literal* data = module::constant(value{const_cast<instruction*>(&i), 0})) {
      values[value{const_cast<instruction*>(&i), 0}] = constant_buffer(*data);
    } else if (auto source = alias_source(i)) {
      values[value{const_cast<instruction*>(&i), 0}] = values.at(*source);
    } else {
      add_instruction(i, block, s, values, destinations);
    }
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (direct[i] || plan_.buffers[outputs[i]].known) continue;  // the host already knows a loop's constant condition
    value v = m.outputs()[i];
    if (static_bytes_of(v))
      add_step(block, s, copy_step{outputs[i], values.at(v)}, *v.producer, {{outputs[i], values.at(v)}});
  }
  scopes_[s].layout = pack(scopes_[s]);
  return block;
}

arena_layout plan_builder::pack(scope& s) {
  for (arena_request& r : s.requests)
    if (r.last < r.first) r = {};  // never used
  return pack_arena(s.requests);
}

std::uint32_t plan_builder::instruction_index(const instruction& i) {
  auto [it, is_new] = instruction_index_.try_emplace(&i, static_cast<std::uint32_t>(plan_.instructions.size()));
  if (is_new) {
    const auto* object = i.op().get_if<code_object>();
    plan_.instructions.push_back(
        {object ? object->symbol : std::string(i.op().name()), i.origin(), object ? object->payload : std::string()});
  }
  return it->second;
}

void plan_builder::add_step(std::uint32_t block, std::size_t s, plan_work step, const instruction& i,
                            const std::vector<buffer_id>& touched) {
  auto at = static_cast<std::int64_t>(plan_.blocks[block].steps.size());
  for (buffer_id id : touched) touch(s, id, at);
  plan_.blocks[block].steps.push_back({std::move(step), instruction_index(i)});
}

void plan_builder::add_instruction(const instruction& i, std::uint32_t block, std::size_t s, value_map& values,
                                   const value_map& destinations) {
  std::vector<buffer_id> inputs, outputs;
  for (value v : i.inputs()) inputs.push_back(values.at(v));
  for (std::uint32_t o = 0; o < i.outputs().size(); ++o) {
    value v{const_cast<instruction*>(&i), o};
    std::size_t bytes = static_bytes_of(v);
    auto wanted = destinations.find(v);
    outputs.push_back(values[v] = wanted != destinations.end() ? wanted->second : add_arena_buffer(s, bytes));
  }
  placed where{i, block, s, inputs, outputs};
  const auto* object = i.op().get_if<code_object>();
  if (object && called(*object)) return add_call(where, *object);
  if (gives_no_elements(i)) return;
  if (object) return add_kernel(where, *object);
  if (i.op().is<if_else>()) return add_if(where);
  if (const auto* op = i.op().get_if<loop>()) return add_loop(where, *op);
  ++plan_.report.interpreted;
  if (!options_.allow_interpreter)
    throw error(error_kind::not_native,
                describe_instruction(i) +
                    " has no native kernel: compile the program for this device, or allow the interpreter");
  interpreted_step step{i.op(), inputs, outputs, {}};
  for (value v : i.inputs()) step.input_types.push_back(v.type());
  add_step(block, s, std::move(step), i, where.all());
}

void plan_builder::place_arena() {
  std::vector<std::size_t> bases(scopes_.size(), 0);  // parents precede their bodies
  for (std::size_t s = 0; s < scopes_.size(); ++s) {
    const scope& here = scopes_[s];
    if (here.parent != SIZE_MAX)
      bases[s] = bases[here.parent] + scopes_[here.parent].layout.offsets[here.parent_request];
    plan_.report.arena_sum_bytes += here.layout.sum;
    if (here.parent != SIZE_MAX)
      // Regions are not buffers of their own.
      plan_.report.arena_sum_bytes -= scopes_[here.parent].requests[here.parent_request].bytes;
  }
  for (std::size_t id = 0; id < plan_.buffers.size(); ++id)
    if (auto [s, request] = homes_[id]; s != SIZE_MAX)
      plan_.buffers[id].offset = bases[s] + scopes_[s].layout.offsets[request];
  plan_.arena_bytes = scopes_[0].layout.bytes;
}

void plan_builder::report() {
  plan_report& r = plan_.report;
  r.arena_bytes = plan_.arena_bytes;
  r.arena_lower_bound = scopes_[0].layout.lower_bound;
  for (const plan_block& b : plan_.blocks)
    r.copies += static_cast<std::size_t>(
        std::ranges::count_if(b.steps, [](const plan_step& s) { return std::holds_alternative<copy_step>(s.what); }));
  r.prepared_bytes = prepare_.bytes();
  r.prepared_found = prepare_.found();
  r.prepared_made = prepare_.made();
}

plan make_plan(const program& source, device& target, const plan_options& options) {
  return plan_builder(source, target, options).build();
}

}  // namespace kiln
