// Compiles `if` and `loop` to blocks of a plan.
#include <algorithm>
#include <cstring>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "runtime/alias.hpp"
#include "runtime/plan_builder.hpp"

namespace kiln {
namespace {

// Whether anything in `body` reads parameter number `index`. Returning an unchanged condition does not count.
bool uses(const module& body, std::size_t index) {
  value wanted = body.parameters()[index];
  return std::ranges::any_of(
             body.instructions(),
             [&](const instruction& i) { return std::ranges::find(i.inputs(), wanted) != i.inputs().end(); }) ||
         std::ranges::any_of(body.outputs().begin() + 1, body.outputs().end(), [&](value v) { return v == wanted; });
}

// The condition that a body returns for the next trip if no kernel computes it: a constant, or the incoming condition,
// which is true.
std::optional<std::uint64_t> constant_condition(const module& body) {
  value root = alias_root(body.outputs()[0]);
  if (root == body.parameters()[1]) return 1;
  const literal* data = module::constant(root);
  if (!data || data->bytes().empty()) return std::nullopt;
  return static_cast<std::uint64_t>(data->bytes()[0]);
}

}  // namespace

// The arena region of a body is one buffer of the enclosing module, live during the step.
void plan_builder::hold_region(std::size_t body_scope, std::size_t s, std::int64_t step) {
  buffer_id region = add_arena_buffer(s, {});
  touch(s, region, step);
  parts_->scopes[body_scope].parent = s;
  parts_->scopes[body_scope].region = region;
}

void plan_builder::add_if(const placed& where) {
  const auto& [i, block, s, inputs, outputs] = where;
  if (i.bodies().size() != 2 || inputs.empty())
    throw error(error_kind::invalid_model, describe_instruction(i) + " needs a condition and two bodies");
  std::vector<buffer_id> arguments(inputs.begin() + 1, inputs.end());
  if_step step{inputs[0], 0, 0};
  auto at = static_cast<std::int64_t>(parts_->blocks[block].steps.size());
  for (std::size_t b = 0; b < 2; ++b) {
    std::size_t body_scope = parts_->scopes.size();
    std::uint32_t body = add_module(*i.bodies()[b], arguments, outputs, s);
    (b == 0 ? step.then_block : step.else_block) = body;
    hold_region(body_scope, s, at);
  }
  add_step(block, s, step, i, where.all());
}

void plan_builder::add_loop(const placed& where, const loop& op) {
  const auto& [i, block, s, inputs, outputs] = where;
  auto carried = static_cast<std::size_t>(op.carried);
  if (i.bodies().size() != 1 || inputs.size() < 2 + carried || outputs.size() < carried)
    throw error(error_kind::invalid_model, describe_instruction(i) + " has too few inputs or outputs");
  const module& body = *i.bodies()[0];
  if (body.parameters().size() < 2 || body.outputs().empty())
    throw error(error_kind::invalid_model, describe_instruction(i) + " has a body without iteration and condition");
  auto moving = [&](buffer_size size) { return add_buffer({buffer_place::moving, size.bytes, 0, nullptr}, size.open); };
  loop_step step;
  step.trip_count = inputs[0];
  step.condition = inputs[1];
  step.iteration = add_arena_buffer(s, {sizeof(std::int64_t)});
  step.condition_in = add_arena_buffer(s, {1});
  step.condition_out = add_arena_buffer(s, {1});
  if (const auto count = op.count(); count && count->is_static()) step.trips = count->value();
  step.counter = static_cast<std::uint32_t>(plan_.counters++);
  step.counts = uses(body, 0);
  step.asks = uses(body, 1);
  plan_.buffers[step.condition_out].known = constant_condition(body);
  std::vector<buffer_id> touched = where.all(), arguments{step.iteration, step.condition_in},
                         results{step.condition_out};
  touched.insert(touched.end(), {step.iteration, step.condition_in, step.condition_out});
  for (std::size_t k = 0; k < carried; ++k) {
    const buffer_size size = size_of(value{const_cast<instruction*>(&i), static_cast<std::uint32_t>(k)});
    carried_value c{inputs[2 + k], moving(size), moving(size), outputs[k], add_arena_buffer(s, size)};
    arguments.push_back(c.in);
    results.push_back(c.out);
    touched.push_back(c.spare);
    step.carried.push_back(c);
  }
  arguments.insert(arguments.end(), inputs.begin() + 2 + static_cast<std::ptrdiff_t>(carried), inputs.end());
  for (std::size_t k = carried; k < outputs.size(); ++k) {
    if (!op.count())
      throw error(error_kind::unsupported,
                  describe_instruction(i) +
                      " stacks values over a number of trips that depends on data; give the trip count as a constant");
    if (1 + k >= body.outputs().size())
      throw error(error_kind::invalid_model, describe_instruction(i) + " has more outputs than its body");
    value slice_value = body.outputs()[1 + k];
    if (storage_bits(slice_value.type().type) < 8 &&
        (!slice_value.type().is_static() || slice_value.type().element_count() % 2))
      throw error(
          error_kind::unsupported,
          describe_instruction(i) + " stacks 4-bit slices that do not fill their last byte; convert them to i8 first");
    scanned_value v{outputs[k], moving(size_of(slice_value))};
    results.push_back(v.slice);
    step.scanned.push_back(v);
  }
  auto at = static_cast<std::int64_t>(parts_->blocks[block].steps.size());
  std::size_t body_scope = parts_->scopes.size();
  step.body = add_module(body, arguments, results, s);
  hold_region(body_scope, s, at);
  if (step.counts) {
    auto& steps = parts_->blocks[step.body].steps;
    steps.insert(steps.begin(), {count_step{step.iteration, step.counter}, instruction_index(i)});
    for (template_request& request : parts_->scopes[body_scope].requests)  // their steps come one later now
      if (request.first <= request.last) ++request.first, ++request.last;
  }
  add_step(block, s, std::move(step), i, touched);
}

}  // namespace kiln
