#include "runtime/plan_runner.hpp"

#include <algorithm>
#include <cstring>

#include "ir/cancellation.hpp"
#include "ir/error.hpp"
#include "ir/loop_trips.hpp"
#include "ir/ops/data_sizes.hpp"

namespace kiln {

void plan_runner::run_block(std::uint32_t block) {
  const auto& steps = plan_.blocks[block].steps;
  for (std::size_t at = 0; at < steps.size();) {
    if (std::size_t replayed = graphs_ ? graphs_->replay(block, at, pointers_, stream_) : 0) {
      at += replayed;
      continue;
    }
    check_stop();
    if (const std::size_t together = steps[at].together; together > 1 && !timer_) {
      device_.launch_together(pointers_.launches(std::span(steps).subspan(at, together)));
      at += together;
      continue;
    }
    const plan_step& step = steps[at++];
    bool holds_blocks = std::holds_alternative<if_step>(step.what) || std::holds_alternative<loop_step>(step.what);
    bool timed = timer_ && !holds_blocks;  // a body's time is counted by its own steps
    if (timed) timer_->begin(step.instruction, stream_);
    std::visit([this](const auto& s) { run(s); }, step.what);
    if (timed) timer_->end(stream_);
  }
}

void plan_runner::run(const launch_step& step) {
  launch_request request = pointers_.launch(step);
  request.stream = &stream_;
  device_.launch(request);
}

void plan_runner::run(const count_step& step) {
  device_.set_word(pointers_[step.to], pointers_.counter(step.counter), &stream_);
}

void plan_runner::run(const call_step& step) {
  foreign_work work = pointers_.call(step);
  work.enqueue(work.data, stream_.native(), work.inputs, work.outputs);
}

void plan_runner::run(const copy_step& step) {
  const graph_node copy = pointers_.copy(step);
  device_.copy(copy.to, copy.from, copy.bytes, &stream_);
}

template <class T>
T plan_runner::scalar(buffer_id from) {
  T value{};
  if (const auto& known = plan_.buffers[from].known) {
    std::memcpy(&value, &*known, sizeof value);
    return value;
  }
  device_.download(&value, pointers_[from], sizeof value, &stream_);
  return value;
}

void plan_runner::run(const check_step& step) { check_data_size(scalar<std::int64_t>(step.computed), step.size); }

void plan_runner::run(const if_step& step) {
  run_block(scalar<std::uint8_t>(step.condition) ? step.then_block : step.else_block);
}

// The trips whose scanned values have room in the results.
std::int64_t plan_runner::most_scanned_trips(const loop_step& step) const {
  if (step.trips >= 0) return step.scanned.empty() ? INT64_MAX : step.trips;
  std::int64_t most = INT64_MAX;
  for (const scanned_value& s : step.scanned)
    if (const std::size_t slice = plan_.buffers[s.slice].bytes)
      most = std::min(most, static_cast<std::int64_t>(plan_.buffers[s.result].bytes / slice));
  return most;
}

void plan_runner::run(const loop_step& step) {
  auto trips = scalar<std::int64_t>(step.trip_count);
  bool go_on = scalar<std::uint8_t>(step.condition) != 0;
  for (const carried_value& c : step.carried) {
    pointers_[c.in] = pointers_[c.initial];
    // With a static trip count, choose the first buffer so that the last trip writes the result in place.
    pointers_[c.out] = pointers_[step.trips > 0 && step.trips % 2 == 0 ? c.spare : c.result];
  }
  constexpr std::uint8_t yes = 1;
  if (step.asks) device_.upload(pointers_[step.condition_in], &yes, sizeof yes, &stream_);
  if (step.counts) device_.fill_zero(pointers_[step.iteration], sizeof(std::int64_t), &stream_);
  std::int64_t done = 0;
  const std::int64_t most = most_scanned_trips(step);
  for (; done < trips && go_on; ++done) {
    check_stop();  // also if the body is empty or replayed as a graph
    if (done >= most)
      throw error(error_kind::unsupported, "a loop with scanned outputs goes on after its " + std::to_string(most) +
                                               " trips; give the trip count as a constant");
    check_trips(done);
    pointers_.counter(step.counter) = static_cast<std::uint32_t>(done);
    for (const scanned_value& s : step.scanned)
      pointers_[s.slice] =
          static_cast<std::byte*>(pointers_[s.result]) + static_cast<std::size_t>(done) * plan_.buffers[s.slice].bytes;
    run_block(step.body);
    go_on = scalar<std::uint8_t>(step.condition_out) != 0;
    for (const carried_value& c : step.carried) {
      pointers_[c.in] = pointers_[c.out];
      pointers_[c.out] = pointers_[c.out] == pointers_[c.result] ? pointers_[c.spare] : pointers_[c.result];
    }
  }
  if (!step.scanned.empty() && done != (step.trips < 0 ? trips : step.trips))
    throw error(error_kind::unsupported, "a loop with scanned outputs stopped after " + std::to_string(done) + " of " +
                                             std::to_string(step.trips < 0 ? trips : step.trips) + " trips");
  for (const carried_value& c : step.carried)
    if (pointers_[c.in] != pointers_[c.result]) copy(c.result, pointers_[c.in]);
}

void plan_runner::run(const interpreted_step& step) {
  std::vector<literal> inputs;
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    std::vector<std::byte> bytes(plan_.buffers[step.inputs[i]].bytes);
    device_.download(bytes.data(), pointers_[step.inputs[i]], bytes.size(), &stream_);
    inputs.emplace_back(step.input_types[i], std::move(bytes));
  }
  auto outputs = step.op.evaluate(inputs);
  for (std::size_t i = 0; i < step.outputs.size(); ++i) {
    if (outputs[i].bytes().size() != plan_.buffers[step.outputs[i]].bytes)
      throw error(error_kind::internal, "the reference of '" + std::string(step.op.name()) + "' gave " +
                                            outputs[i].type().str() + ", which is not the inferred shape");
    device_.upload(pointers_[step.outputs[i]], outputs[i].bytes().data(), outputs[i].bytes().size(), &stream_);
  }
}

}  // namespace kiln
