#include "ir/module.hpp"

#include <algorithm>
#include <unordered_map>

#include "ir/error.hpp"
#include "ir/ops/choice.hpp"
#include "ir/ops/structure.hpp"

namespace kiln {
namespace {

std::vector<shape> shapes_of(const std::vector<value>& values) {
  std::vector<shape> shapes;
  shapes.reserve(values.size());
  for (value v : values) shapes.push_back(v.type());
  return shapes;
}

// The output shapes of an instruction with bodies come from the bodies (ir/ops/structure.hpp).
std::vector<shape> infer_with_bodies(const operation& op, const std::vector<value>& inputs,
                                     const std::vector<module*>& bodies) {
  if (bodies.empty()) return op.infer(shapes_of(inputs));
  std::vector<shape> outputs = shapes_of(bodies.front()->outputs());
  if (const auto* c = op.get_if<choice>()) return c->merged(outputs, shapes_of(bodies.back()->outputs()));
  const auto* l = op.get_if<loop>();
  if (!l) return outputs;
  if (outputs.empty() || l->carried < 0 || static_cast<std::size_t>(l->carried) >= outputs.size())
    throw error(error_kind::invalid_model, "the body of a loop must give a condition and every carried value");
  outputs.erase(outputs.begin());
  for (auto i = static_cast<std::size_t>(l->carried); i < outputs.size(); ++i) {
    const auto count = l->count();
    if (!count)
      throw error(error_kind::unsupported,
                  "a loop with scanned outputs needs a trip count that does not depend on data");
    outputs[i].dims.insert(outputs[i].dims.begin(), *count);
  }
  return outputs;
}

void remove_one(std::vector<instruction*>& users, const instruction* user) {
  auto found = std::find(users.begin(), users.end(), user);
  if (found != users.end()) users.erase(found);
}

}  // namespace

instruction* module::emplace(position where, operation op, std::vector<value> inputs, std::vector<shape> outputs,
                             std::vector<module*> bodies) {
  position at = instructions_.emplace(where);
  instruction& made = *at;
  positions_.emplace(&made, at);
  made.op_ = std::move(op);
  made.inputs_ = std::move(inputs);
  made.outputs_ = std::move(outputs);
  made.bodies_ = std::move(bodies);
  for (value v : made.inputs_) v.producer->users_.push_back(&made);
  return &made;
}

module::position module::find(instruction* which) {
  auto found = positions_.find(which);
  if (found == positions_.end()) throw error(error_kind::internal, "an instruction is not in module '" + name_ + "'");
  return found->second;
}

value module::add(operation op, std::vector<value> inputs, std::vector<module*> bodies) {
  auto outputs = infer_with_bodies(op, inputs, bodies);
  return {emplace(instructions_.end(), std::move(op), std::move(inputs), std::move(outputs), std::move(bodies)), 0};
}

value module::insert(instruction* before, operation op, std::vector<value> inputs, std::vector<module*> bodies) {
  if (!before) return add(std::move(op), std::move(inputs), std::move(bodies));
  auto outputs = infer_with_bodies(op, inputs, bodies);
  return {emplace(find(before), std::move(op), std::move(inputs), std::move(outputs), std::move(bodies)), 0};
}

value module::add_parameter(std::string name, shape type) {
  parameter p{std::move(name), type.type, type.dims};
  return {emplace(instructions_.end(), std::move(p), {}, {std::move(type)}, {}), 0};
}

value module::add_constant(literal data) {
  shape type = data.type();
  return {emplace(instructions_.begin(), kiln::constant{std::move(data)}, {}, {std::move(type)}, {}), 0};
}

void module::set_outputs(std::vector<value> values, std::vector<std::string> names) {
  if (values.size() != names.size())
    throw error(error_kind::internal, "module '" + name_ + "' needs one name for every output");
  for (value v : outputs_) --v.producer->given_;
  for (value v : values) ++v.producer->given_;
  outputs_ = std::move(values);
  output_names_ = std::move(names);
}

std::vector<value> module::parameters() const {
  std::vector<value> found;
  for (const instruction& i : instructions_)
    if (i.op().is<parameter>()) found.push_back({const_cast<instruction*>(&i), 0});
  return found;
}

const std::string& module::parameter_name(value v) {
  const auto* p = v.producer->op().get_if<parameter>();
  if (!p) throw error(error_kind::internal, "not a parameter: " + v.producer->op().str());
  return p->name_in_module;
}

const literal* module::constant(value v) {
  const auto* c = v.producer->op().get_if<kiln::constant>();
  return c ? &c->data : nullptr;
}

void module::replace(value old, value replacement) {
  if (old == replacement) return;
  if (old.type() != replacement.type())
    throw error(error_kind::internal, "cannot replace " + old.type().str() + " (" + old.producer->op().str() + ") by " +
                                          replacement.type().str());
  std::vector<instruction*> users = old.producer->users_;
  std::sort(users.begin(), users.end());
  users.erase(std::unique(users.begin(), users.end()), users.end());
  for (instruction* user : users) {
    if (user == replacement.producer) continue;  // the replacement is built from the old value
    for (std::size_t i = 0; i < user->inputs_.size(); ++i)
      if (user->inputs_[i] == old) set_input(user, i, replacement);
  }
  if (old.producer->given_ == 0) return;
  for (value& given : outputs_) {
    if (given != old) continue;
    given = replacement;
    --old.producer->given_;
    ++replacement.producer->given_;
  }
}

void module::set_input(instruction* user, std::size_t index, value replacement) {
  remove_one(user->inputs_[index].producer->users_, user);
  user->inputs_[index] = replacement;
  replacement.producer->users_.push_back(user);
}

void module::set_operation(instruction* which, operation op) {
  which->outputs_ = infer_with_bodies(op, which->inputs_, which->bodies_);
  which->op_ = std::move(op);
}

bool module::has_uses(const instruction* which) { return !which->users_.empty() || which->given_ > 0; }

void module::erase(instruction* which) {
  if (has_uses(which)) throw error(error_kind::internal, "erasing an instruction that is used: " + which->op().str());
  for (value v : which->inputs_) remove_one(v.producer->users_, which);
  position at = find(which);
  positions_.erase(which);
  instructions_.erase(at);
}

std::size_t module::erase_dead() {
  std::size_t before = instructions_.size();
  for (auto at = instructions_.end(); at != instructions_.begin();) {
    --at;
    if (has_uses(&*at) || at->op().is<parameter>()) continue;
    for (value v : at->inputs_) remove_one(v.producer->users_, &*at);
    positions_.erase(&*at);
    at = instructions_.erase(at);
  }
  return before - instructions_.size();
}

void module::sort() {
  std::list<instruction> sorted;
  enum class state : std::uint8_t { open, done };
  std::unordered_map<const instruction*, state> states;
  // Depth-first search with an explicit stack, in the current order. It does not move instructions that are already in
  // order.
  std::vector<std::pair<instruction*, std::size_t>> stack;
  std::vector<instruction*> order;
  for (instruction& i : instructions_) order.push_back(&i);
  for (instruction* root : order) {
    if (states.contains(root)) continue;
    stack.emplace_back(root, 0);
    states[root] = state::open;
    while (!stack.empty()) {
      auto& [at, next] = stack.back();
      if (next < at->inputs_.size()) {
        instruction* producer = at->inputs_[next++].producer;
        auto [found, fresh] = states.try_emplace(producer, state::open);
        if (fresh) stack.emplace_back(producer, 0);
        else if (found->second == state::open)
          throw error(error_kind::invalid_model, "module '" + name_ + "' has a cycle through " + producer->op().str());
        continue;
      }
      states[at] = state::done;
      sorted.splice(sorted.end(), instructions_, positions_.at(at));
      stack.pop_back();
    }
  }
  instructions_ = std::move(sorted);
}

std::vector<value> module::inline_module(const module& other, std::span<const value> arguments, instruction* before) {
  std::unordered_map<const instruction*, instruction*> copies;
  position where = before ? find(before) : instructions_.end();
  std::size_t next_argument = 0;
  auto mapped = [&](value v) { return value{copies.at(v.producer), v.index}; };
  std::unordered_map<const instruction*, value> replaced;
  auto resolve = [&](value v) {
    auto found = replaced.find(v.producer);
    return found == replaced.end() ? mapped(v) : found->second;
  };
  for (const instruction& i : other.instructions_) {
    if (i.op().is<parameter>()) {
      if (next_argument >= arguments.size())
        throw error(error_kind::internal, "too few arguments to inline module '" + other.name_ + "'");
      replaced[&i] = arguments[next_argument++];
      continue;
    }
    std::vector<value> inputs;
    for (value v : i.inputs_) inputs.push_back(resolve(v));
    instruction* copy = emplace(where, i.op_, std::move(inputs), i.outputs_, i.bodies_);
    copy->origin_ = i.origin_;
    copies[&i] = copy;
  }
  std::vector<value> outputs;
  for (value v : other.outputs_) outputs.push_back(resolve(v));
  return outputs;
}

}  // namespace kiln
