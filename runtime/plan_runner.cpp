#include "runtime/plan_runner.hpp"

#include <chrono>

#include "ir/error.hpp"

namespace kiln {

void plan_runner::run_block(std::uint32_t block) {
  for (const plan_step& step : plan_.blocks[block].steps) {
    bool holds_blocks = std::holds_alternative<if_step>(step.what) || std::holds_alternative<loop_step>(step.what);
    if (!profile_ || holds_blocks) {  // the time of a body belongs to its own steps
      std::visit([this](const auto& s) { run(s); }, step.what);
      continue;
    }
    auto begin = std::chrono::steady_clock::now();
    std::visit([this](const auto& s) { run(s); }, step.what);
    device_.synchronize();
    auto& entry = profile_->instructions[step.instruction];
    entry.nanoseconds += std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin).count();
    ++entry.steps;
  }
}

void plan_runner::run(const launch_step& step) {
  for (std::uint32_t i = 0; i < step.argument_count; ++i) arguments_[i] = table_[plan_.arguments[step.first_argument + i]];
  device_.launch({step.kernel, step.grid, step.grid_y, step.grid_z, step.block, step.lds_bytes, {arguments_, step.argument_count}});
}

void plan_runner::run(const copy_step& step) { copy(step.to, table_[step.from]); }

template <class T>
T plan_runner::scalar(buffer_id from) {
  T value{};
  device_.copy(&value, table_[from], sizeof value);
  device_.synchronize();
  return value;
}

void plan_runner::run(const if_step& step) { run_block(scalar<std::uint8_t>(step.condition) ? step.then_block : step.else_block); }

void plan_runner::run(const loop_step& step) {
  auto trips = scalar<std::int64_t>(step.trip_count);
  bool go_on = scalar<std::uint8_t>(step.condition) != 0;
  for (const carried_value& c : step.carried) {
    table_[c.in] = table_[c.initial];
    // With a static trip count the last trip writes the result in place.
    table_[c.out] = table_[step.trips > 0 && step.trips % 2 == 0 ? c.spare : c.result];
  }
  std::int64_t done = 0;
  for (; done < trips && go_on; ++done) {
    if (!step.scanned.empty() && done >= step.trips)
      throw error(error_kind::unsupported, "a loop with scanned outputs goes on after its " + std::to_string(step.trips) + " trips; give the trip count as a constant");
    set_scalar(step.iteration, done);
    set_scalar(step.condition_in, std::uint8_t{1});
    for (const scanned_value& s : step.scanned) table_[s.slice] = static_cast<std::byte*>(table_[s.result]) + static_cast<std::size_t>(done) * plan_.buffers[s.slice].bytes;
    run_block(step.body);
    go_on = scalar<std::uint8_t>(step.condition_out) != 0;
    for (const carried_value& c : step.carried) {
      table_[c.in] = table_[c.out];
      table_[c.out] = table_[c.out] == table_[c.result] ? table_[c.spare] : table_[c.result];
    }
  }
  if (!step.scanned.empty() && done != step.trips)
    throw error(error_kind::unsupported, "a loop with scanned outputs stopped after " + std::to_string(done) + " of " + std::to_string(step.trips) + " trips");
  for (const carried_value& c : step.carried)
    if (table_[c.in] != table_[c.result]) copy(c.result, table_[c.in]);
}

void plan_runner::run(const interpreted_step& step) {
  std::vector<literal> inputs;
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    std::vector<std::byte> bytes(plan_.buffers[step.inputs[i]].bytes);
    device_.copy(bytes.data(), table_[step.inputs[i]], bytes.size());
    device_.synchronize();
    inputs.emplace_back(step.input_types[i], std::move(bytes));
  }
  auto outputs = step.op.evaluate(inputs);
  for (std::size_t i = 0; i < step.outputs.size(); ++i) {
    if (outputs[i].bytes().size() != plan_.buffers[step.outputs[i]].bytes)
      throw error(error_kind::internal, "the reference of '" + std::string(step.op.name()) + "' gave " + outputs[i].type().str() + ", which is not the inferred shape");
    copy(step.outputs[i], outputs[i].bytes().data());
  }
  device_.synchronize();
}

}  // namespace kiln
