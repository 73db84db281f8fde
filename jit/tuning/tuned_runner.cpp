#include "jit/tuning/tuned_runner.hpp"

#include <utility>

namespace kiln {

tuned_runner::tuned_runner(background_tuner& tuner, graph_options graphs, bool starts)
    : tuner_(tuner), graphs_(std::move(graphs)), starts_(starts), at_(tuner.take(graphs_)) {}

tuned_runner::~tuned_runner() = default;

void tuned_runner::take_newest() {
  if (at_->number == tuner_.newest()) return;
  graph_options graphs = graphs_;
  if (auto found = at_->context.decision()) graphs.decision = found;
  background_tuner::version newest = tuner_.take(graphs);
  tuner_.give_back(std::move(*at_));
  at_.emplace(std::move(newest));
}

void tuned_runner::run(std::span<const executable::input_span> inputs,
                       std::span<const executable::output_span> outputs) {
  take_newest();
  {
    device_turns::run_guard guard(tuner_.turns());
    at_->exe.run(at_->context, inputs, outputs);
  }
  if (starts_ && !tuner_.started()) start_with(inputs);
}

void tuned_runner::run(std::span<const executable::input_span> inputs, std::span<const executable::output_span> outputs,
                       device_stream& stream) {
  take_newest();
  {
    device_turns::run_guard guard(tuner_.turns());
    at_->exe.run(at_->context, inputs, outputs, stream);
  }
  if (!starts_ || tuner_.started()) return;
  at_->exe.target().synchronize(&stream);  // the inputs may be overwritten after it
  start_with(inputs);
}

void tuned_runner::start(std::vector<literal> inputs) {
  graph_options graphs = graphs_;
  if (auto found = at_->context.decision()) graphs.decision = found;
  tuner_.start(std::move(inputs), std::move(graphs));
}

void tuned_runner::start_with(std::span<const executable::input_span> inputs) {
  const kiln::executable& exe = at_->exe;
  std::vector<literal> copies;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const plan_port& port = exe.plan().inputs[i];
    std::vector<std::byte> bytes(port.bytes);
    exe.target().download(bytes.data(), inputs[i].data(), bytes.size());
    copies.emplace_back(shape{port.type.type, {port.dims.begin(), port.dims.end()}}, std::move(bytes));
  }
  start(std::move(copies));
}

}  // namespace kiln
