#include "runtime/plan_runner.hpp"

#include <cstring>

#include "ir/error.hpp"

namespace kiln {

void plan_runner::run_block(std::uint32_t block) {
  for (const plan_step& step : plan_.blocks[block].steps) {
    bool holds_blocks = std::holds_alternative<if_step>(step.what) || std::holds_alternative<loop_step>(step.what);
    bool timed = timer_ && !holds_blocks;  // the time of a body belongs to its own steps
    if (timed) timer_->begin(step.instruction, stream_);
    std::visit([this](const auto& s) { run(s); }, step.what);
    if (timed) timer_->end(stream_);
  }
}

void plan_runner::run(const launch_step& step) {
  if (host_) {
    void** values = context_.arguments_.data();
    for (std::uint32_t i = 0; i < step.argument_count; ++i) values[i] = table_[plan_.arguments[step.first_argument + i]];
    device_.launch({step.kernel, step.grid, step.grid_y, step.grid_z, step.block, step.lds_bytes, {values, step.argument_count}, {}, &stream_});
    return;
  }
  for (std::uint32_t m = step.first_map; m < step.first_map + step.map_count; ++m) {
    const plan_tensor_map& what = plan_.tensor_maps[m];
    void* base = table_[plan_.arguments[what.argument]];
    if (context_.mapped_[m] == base) continue;
    device_.encode(what.map, base, &context_.maps_[m]);
    context_.mapped_[m] = base;
  }
  device_.launch({step.kernel, step.grid, step.grid_y, step.grid_z, step.block, step.lds_bytes, {}, {context_.arguments_.data() + step.first_argument, step.argument_count}, &stream_});
}

void plan_runner::run(const copy_step& step) { copy(step.to, table_[step.from]); }

template <class T>
T plan_runner::scalar(buffer_id from) {
  T value{};
  if (const auto& known = plan_.buffers[from].known) {
    std::memcpy(&value, &*known, sizeof value);
    return value;
  }
  device_.download(&value, table_[from], sizeof value, &stream_);
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
    device_.download(bytes.data(), table_[step.inputs[i]], bytes.size(), &stream_);
    inputs.emplace_back(step.input_types[i], std::move(bytes));
  }
  auto outputs = step.op.evaluate(inputs);
  for (std::size_t i = 0; i < step.outputs.size(); ++i) {
    if (outputs[i].bytes().size() != plan_.buffers[step.outputs[i]].bytes)
      throw error(error_kind::internal, "the reference of '" + std::string(step.op.name()) + "' gave " + outputs[i].type().str() + ", which is not the inferred shape");
    device_.upload(table_[step.outputs[i]], outputs[i].bytes().data(), outputs[i].bytes().size(), &stream_);
  }
}

}  // namespace kiln
