#include "session/lazy_runner.hpp"

#include <algorithm>
#include <utility>

namespace kiln {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t trial_runs = 10, trial_warm_up = 2;  // of both versions together
constexpr double worth_changing = 0.97;                    // of the time of a run

double milliseconds_since(clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(clock::now() - begin).count();
}

void keep_least(double& least, double ms) { least = least == 0 ? ms : std::min(least, ms); }

}  // namespace

lazy_runner::lazy_runner(lazy_state& state, executable first, graph_options graphs,
                         std::function<void(const execution_context&)> at_end)
    : state_(state),
      graphs_(std::move(graphs)),
      at_end_(std::move(at_end)),
      current_(new version{first, first.make_context(graphs_)}),
      decided_(!state.serves_many()) {
  if (!decided_) graphs_.decision.reset();  // it is about these kernels, and others may come
}

lazy_runner::~lazy_runner() {
  if (at_end_) at_end_(current_->context);
}

void lazy_runner::change_to(std::unique_ptr<version> better) {
  if (at_end_) std::exchange(at_end_, nullptr)(current_->context);
  current_ = std::move(better);
}

// Does what another runner of the instance has decided, or begins a trial.
void lazy_runner::follow() {
  if (decided_) return;
  const kernel_choice choice = state_.choice();
  if (choice == kernel_choice::none_yet || (choice == kernel_choice::on_trial && trial_)) return;
  trial_.reset();
  if (choice == kernel_choice::general) {
    decided_ = true;
    return;
  }
  const executable better = state_.specialized();
  if (choice == kernel_choice::on_trial) {
    trial_.emplace(trial{{better, better.make_context(graphs_)}});
    return;
  }
  change_to(std::unique_ptr<version>(new version{better, better.make_context(graphs_)}));
  decided_ = true;
}

void lazy_runner::judge() {
  if (++trial_->runs < trial_runs) return;
  const bool faster = trial_->specialized_ms <= worth_changing * trial_->general_ms;
  if (faster) change_to(std::make_unique<version>(std::move(trial_->specialized)));
  trial_.reset();
  decided_ = true;
  state_.choose(faster ? kernel_choice::specialized : kernel_choice::general);
}

void lazy_runner::run(std::span<const executable::input_span> inputs,
                      std::span<const executable::output_span> outputs) {
  follow();
  const bool specialized = trial_ && trial_->runs % 2 == 1;
  version& with = specialized ? trial_->specialized : *current_;
  const auto begin = clock::now();
  with.exe.run(with.context, inputs, outputs);
  const double ms = milliseconds_since(begin);
  state_.ran(ms);
  if (!trial_) return;
  if (trial_->runs >= trial_warm_up) keep_least(specialized ? trial_->specialized_ms : trial_->general_ms, ms);
  judge();
}

void lazy_runner::run(std::span<const executable::input_span> inputs, std::span<const executable::output_span> outputs,
                      device_stream& stream) {
  follow();
  if (trial_) {
    state_.choose(kernel_choice::specialized);
    follow();
  }
  const auto begin = clock::now();
  current_->exe.run(current_->context, inputs, outputs, stream);
  state_.ran(milliseconds_since(begin));
}

}  // namespace kiln
