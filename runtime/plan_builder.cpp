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

// Collects the buffers that steps name directly. Inside a loop, moving buffers refer to buffers that the loop step
// names.
struct named_buffers {
  std::set<buffer_id>& found;
  void operator()(const launch_step&) {}  // plan::arguments
  void operator()(const copy_step& s) { found.insert(s.from); }
  void operator()(const count_step&) {}
  void operator()(const call_step&) {}  // plan::arguments
  void operator()(const check_step& s) { found.insert(s.computed); }
  void operator()(const if_step& s) { found.insert(s.condition); }
  void operator()(const loop_step& s) {
    found.insert({s.trip_count, s.condition});
    for (const carried_value& c : s.carried) found.insert(c.initial);
  }
  void operator()(const interpreted_step& s) { found.insert(s.inputs.begin(), s.inputs.end()); }
};

}  // namespace

plan_builder::buffer_size plan_builder::size_of(const shape& type, const instruction& producer) {
  if (type.is_static()) return {type.bytes()};
  if (open_) return {0, parts_->sizes.add_bytes(type)};
  throw error(error_kind::usage, describe_instruction(producer) + " has the symbolic shape " + type.str() +
                                     ": bind every dimension before the program is loaded");
}

std::vector<buffer_id> plan_builder::placed::all() const {
  std::vector<buffer_id> ids = inputs;
  ids.insert(ids.end(), outputs.begin(), outputs.end());
  return ids;
}

std::unique_ptr<template_parts> plan_builder::build() {
  load_kernels();
  const module& main = source_.main();
  std::vector<buffer_id> inputs, outputs;
  auto add_port = [&](buffer_place place, std::size_t number, value v) {
    const buffer_size size = size_of(v);
    return add_buffer({place, size.bytes, number, nullptr}, size.open);
  };
  for (value v : main.parameters()) {
    inputs.push_back(add_port(buffer_place::input, plan_.inputs.size(), v));
    plan_.inputs.push_back(port(module::parameter_name(v), v, inputs.back()));
    plan_.inputs.back().used = main.has_uses(v.producer);
  }
  for (std::size_t i = 0; i < main.outputs().size(); ++i) {
    value v = main.outputs()[i];
    outputs.push_back(add_port(buffer_place::output, i, v));
    plan_.outputs.push_back(port(main.output_names()[i], v, outputs.back()));
    plan_.outputs.back().bounded = bounded_axes(main, v);
  }
  if (!device_.info().host_memory) prepare_largest_first(main);
  add_module(main, inputs, outputs, SIZE_MAX);
  constants_.keep(read_buffers());
  // One owner of all: plans of many sizes are copies.
  plan_.owners = {std::make_shared<const std::vector<std::shared_ptr<const void>>>(std::move(plan_.owners))};
  plan_.instruction_list = std::make_shared<const std::vector<plan_instruction>>(std::move(instructions_));
  plan_.calls.assign(options_.calls.begin(), options_.calls.end());
  forget_objects();
  device_.synchronize();  // uploaded and prepared data must be visible to every stream
  return std::move(parts_);
}

// The code is loaded. Row kernels and late ones may still prepare weights, whose keys cover the code.
void plan_builder::forget_objects() {
  for (const auto& [payload, index] : kernel_index_)
    if (!parts_->row_kernels.contains(payload) &&
        std::ranges::find(parts_->late, index, &late_kernel::kernel) == parts_->late.end())
      parts_->kernels[index].object = {};
}

std::set<buffer_id> plan_builder::read_buffers() const {
  std::set<buffer_id> read(plan_.arguments.begin(), plan_.arguments.end());
  for (const template_block& block : parts_->blocks)
    for (const template_step& step : block.steps) std::visit(named_buffers{read}, step.what);
  return read;
}

buffer_id plan_builder::add_buffer(plan_buffer b, size_table::index size) {
  plan_.buffers.push_back(b);
  parts_->buffer_sizes.push_back(size);
  homes_.push_back({SIZE_MAX, 0});
  return static_cast<buffer_id>(plan_.buffers.size() - 1);
}

buffer_id plan_builder::add_arena_buffer(std::size_t s, buffer_size size) {
  buffer_id id = add_buffer({buffer_place::arena, size.bytes, 0, nullptr}, size.open);
  homes_[id] = {s, parts_->scopes[s].requests.size()};
  parts_->scopes[s].requests.push_back({id});
  return id;
}

// The instruction that holds a body keeps buffers of outer scopes alive during the body.
void plan_builder::touch(std::size_t s, buffer_id id, std::int64_t step) {
  auto [owner, request] = homes_[id];
  if (owner != s) return;
  template_request& r = parts_->scopes[s].requests[request];
  r.first = std::min(r.first, step);
  r.last = std::max(r.last, step);
}

plan_port plan_builder::port(const std::string& name, value v, buffer_id id) {
  const shape& type = v.type();
  plan_port made{name, type, {}, size_of(v).bytes, element_alignment(type.type), id};
  if (type.is_static()) {
    made.dims = type.static_dims();
    return made;
  }
  open_port open{id, {}};
  for (const dim& d : type.dims) open.dims.push_back(parts_->sizes.add(d));
  parts_->ports.push_back(std::move(open));
  return made;
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
  buffer_id id = add_buffer({buffer_place::fixed, data.byte_count(), 0, nullptr});
  constants_.add(id, data);
  return id;
}

// `inputs` are the buffers of the parameters. The results must end up in the buffers `outputs`.
std::uint32_t plan_builder::add_module(const module& m, const std::vector<buffer_id>& inputs,
                                       const std::vector<buffer_id>& outputs, std::size_t parent) {
  auto block = static_cast<std::uint32_t>(parts_->blocks.size());
  parts_->blocks.push_back({m.name(), {}});
  std::size_t s = parts_->scopes.size();
  parts_->scopes.push_back({{}, parent, 0});
  if (m.parameters().size() != inputs.size() || m.outputs().size() != outputs.size())
    throw error(error_kind::invalid_model,
                "module '" + m.name() + "' has " + std::to_string(m.parameters().size()) + " parameters and " +
                    std::to_string(m.outputs().size()) + " outputs, the instruction that holds it " +
                    std::to_string(inputs.size()) + " and " + std::to_string(outputs.size()));
  for (const instruction& i : m.instructions()) order_.emplace(&i, order_.size());
  results_.insert(m.outputs().begin(), m.outputs().end());
  // A result is computed directly into the first output buffer that needs it. Parameters, constants and further uses of
  // the result are copied.
  value_map destinations;
  std::vector<bool> direct(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    value root = alias_root(m.outputs()[i]);
    if (root.producer->op().is<parameter>() || root.producer->op().is<constant>()) continue;
    std::vector<value> states = states_in_place(root);
    if (states.back().producer->op().is<parameter>()) {
      if (options_.share_updated) continue;
      states.pop_back();
    }
    direct[i] = destinations.try_emplace(root, outputs[i]).second;
    for (std::size_t earlier = 1; direct[i] && earlier < states.size(); ++earlier)
      destinations.try_emplace(states[earlier], outputs[i]);
  }
  value_map values;
  std::size_t next_input = 0;
  for (const instruction& i : m.instructions()) {
    if (i.op().is<parameter>()) {
      values[value{const_cast<instruction*>(&i), 0}] = inputs[next_input++];
    } else if (const literal* data = module::constant(value{const_cast<instruction*>(&i), 0})) {
      values[value{const_cast<instruction*>(&i), 0}] = constant_buffer(*data);
    } else if (auto source = alias_source(i)) {
      const value alias{const_cast<instruction*>(&i), 0};
      require_equal_sizes(alias, *source);
      values[alias] = values.at(*source);
      if (const auto* op = i.op().get_if<data_sizes>()) add_size_checks(i, *op, block, s, values);
    } else {
      add_instruction(i, block, s, values, destinations);
    }
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (direct[i] || plan_.buffers[outputs[i]].known) continue;  // the host already knows a loop's constant condition
    value v = m.outputs()[i];
    if (options_.share_updated && shared_with_input(outputs[i], values.at(v))) continue;
    if (size_of(v).may_have_bytes())
      add_step(block, s, copy_step{outputs[i], values.at(v)}, *v.producer, {{outputs[i], values.at(v)}});
  }
  return block;
}

void plan_builder::add_size_checks(const instruction& i, const data_sizes& op, std::uint32_t block, std::size_t s,
                                   const value_map& values) {
  for (std::size_t k = 0; k < op.sizes.size(); ++k) {
    const dim& size = op.sizes[k];
    check_step step{values.at(i.inputs()[1 + k])};
    if (size.is_static()) step.size = size.value();
    else if (!open_) throw error(error_kind::usage, describe_instruction(i) + " has the open size " + size.str());
    template_step& made = add_step(block, s, step, i, {step.computed});
    if (!size.is_static()) made.size = parts_->sizes.add(size);
  }
}

void plan_builder::require_equal_sizes(value alias, value source) {
  if (alias.type().is_static() && source.type().is_static()) return;
  parts_->equal.emplace_back(parts_->sizes.add_bytes(alias.type()), parts_->sizes.add_bytes(source.type()));
}

std::uint32_t plan_builder::instruction_index(const instruction& i) {
  auto [it, is_new] = instruction_index_.try_emplace(&i, static_cast<std::uint32_t>(instructions_.size()));
  if (is_new) {
    const auto* object = i.op().get_if<code_object>();
    instructions_.push_back(
        {object ? object->symbol : std::string(i.op().name()), i.origin(), object ? object->payload : std::string()});
  }
  return it->second;
}

template_step& plan_builder::add_step(std::uint32_t block, std::size_t s, plan_work step, const instruction& i,
                                      const std::vector<buffer_id>& touched) {
  auto& steps = parts_->blocks[block].steps;
  for (buffer_id id : touched) touch(s, id, static_cast<std::int64_t>(steps.size()));
  return steps.emplace_back(template_step{std::move(step), instruction_index(i)});
}

bool plan_builder::read_before(value v, const instruction& last) {
  if (results_.contains(v)) return false;
  return std::ranges::all_of(v.producer->users(), [&](const instruction* user) {
    if (std::ranges::find(user->inputs(), v) == user->inputs().end() || user == &last) return true;
    const auto alias = alias_source(*user);
    if (alias && *alias == v) return read_before(value{const_cast<instruction*>(user), 0}, last);
    const auto found = order_.find(user);
    return found != order_.end() && found->second < order_.at(&last);
  });
}

// A reader that runs later would see what the kernel changes.
std::optional<std::size_t> plan_builder::updated_in_place(value v) {
  const instruction& i = *v.producer;
  const auto* object = i.op().get_if<code_object>();
  if (!object || called(*object) || gives_no_elements(i) || !order_.contains(&i)) return std::nullopt;
  const auto index = kernel_index_.find(object->payload);
  if (index == kernel_index_.end() || parts_->row_kernels.contains(object->payload)) return std::nullopt;
  for (const launch& l : parts_->kernels[index->second].launches) {
    if (!l.copies || l.copies->output != v.index || l.copies->input >= i.inputs().size()) continue;
    const value copied = i.inputs()[l.copies->input], owner = alias_root(copied);
    const auto reads = std::ranges::count_if(i.inputs(), [&](value input) { return alias_root(input) == owner; });
    if (copied.type() != v.type() || reads != 1 || !read_before(owner, i)) continue;
    const operation& source = owner.producer->op();
    const bool updated =
        source.is<parameter>() &&
        std::ranges::find(options_.updated_inputs, module::parameter_name(owner)) != options_.updated_inputs.end();
    if (updated || source.is<code_object>()) return l.copies->input;
  }
  return std::nullopt;
}

std::vector<value> plan_builder::states_in_place(value v) {
  std::vector<value> states{v};
  while (const auto input = updated_in_place(states.back()))
    states.push_back(alias_root(states.back().producer->inputs()[*input]));
  return states;
}

bool plan_builder::shared_with_input(buffer_id output, buffer_id with) {
  const plan_buffer &to = plan_.buffers[output], &from = plan_.buffers[with];
  if (to.place != buffer_place::output || from.place != buffer_place::input) return false;
  plan_port& port = plan_.outputs[to.offset];
  const std::string& input = plan_.inputs[from.offset].name;
  if (std::ranges::find(options_.updated_inputs, input) == options_.updated_inputs.end()) return false;
  port.buffer = with, port.shares = from.offset;
  return true;
}

void plan_builder::add_instruction(const instruction& i, std::uint32_t block, std::size_t s, value_map& values,
                                   const value_map& destinations) {
  std::vector<buffer_id> inputs, outputs;
  for (value v : i.inputs()) inputs.push_back(values.at(v));
  for (std::uint32_t o = 0; o < i.outputs().size(); ++o) {
    value v{const_cast<instruction*>(&i), o};
    const buffer_size size = size_of(v);
    auto wanted = destinations.find(v);
    if (wanted != destinations.end()) {
      outputs.push_back(values[v] = wanted->second);
    } else if (const auto input = updated_in_place(v)) {
      outputs.push_back(values[v] = inputs[*input]);
    } else {
      outputs.push_back(values[v] = add_arena_buffer(s, size));
    }
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
  for (value v : where.what.inputs())
    if (!v.type().is_static())
      throw error(error_kind::not_native, describe_instruction(i) + " is interpreted, which needs all dimensions");
  for (value v : i.inputs()) step.input_types.push_back(v.type());
  add_step(block, s, std::move(step), i, where.all());
}

}  // namespace kiln
