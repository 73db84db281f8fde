// Runs a model that is tuned in the background. Each run waits for its turn on the device and uses the newest kernels.
#pragma once

#include <optional>

#include "jit/tuning/background_tuner.hpp"
#include "runtime/model_runner.hpp"

namespace kiln {

class tuned_runner final : public model_runner {
 public:
  // Runs the tuner's newest version. `tuner` must outlive this object. With `starts`, the first run starts tuning with
  // copies of its inputs; if it uses a caller's stream, it waits for that run to end.
  tuned_runner(background_tuner& tuner, graph_options graphs, bool starts = true);
  ~tuned_runner() override;

  void run(std::span<const executable::input_span> inputs, std::span<const executable::output_span> outputs) override;
  void run(std::span<const executable::input_span> inputs, std::span<const executable::output_span> outputs,
           device_stream& stream) override;
  const execution_context& context() const override { return at_->context; }
  const kiln::executable& executable() const { return at_->exe; }
  std::size_t version() const { return at_->number; }
  // Starts tuning with these inputs, in the order of the plan's inputs.
  void start(std::vector<literal> inputs);

 private:
  void take_newest();
  void start_with(std::span<const executable::input_span> inputs);
  background_tuner& tuner_;
  graph_options graphs_;
  bool starts_;
  std::optional<background_tuner::version> at_;
};

}  // namespace kiln
