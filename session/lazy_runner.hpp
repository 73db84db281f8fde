// Runs an instance of a session with specialization::lazy. Counts the runs, and if the instance began with kernels that
// serve many sizes, changes to specialized ones when they are there and faster.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "runtime/model_runner.hpp"
#include "session/lazy_state.hpp"

namespace kiln {

class lazy_runner final : public model_runner {
 public:
  // `first`: with the kernels that the instance began with. `at_end` is called with its context when it is no longer
  // used. `state` must outlive this object.
  lazy_runner(lazy_state& state, executable first, graph_options graphs,
              std::function<void(const execution_context&)> at_end);
  ~lazy_runner() override;

  void run(std::span<const executable::input_span> inputs, std::span<const executable::output_span> outputs) override;
  // Changes to specialized kernels without comparing, because the end of a run is not awaited.
  void run(std::span<const executable::input_span> inputs, std::span<const executable::output_span> outputs,
           device_stream& stream) override;
  const execution_context& context() const override { return current_->context; }

 private:
  struct version {
    executable exe;
    execution_context context;
  };
  // Real runs that alternate between the two versions. The fastest of each counts.
  struct trial {
    version specialized;
    double general_ms = 0, specialized_ms = 0;
    std::size_t runs = 0;
  };
  void follow();
  void judge();

  void change_to(std::unique_ptr<version> better);

  lazy_state& state_;
  graph_options graphs_;
  std::function<void(const execution_context&)> at_end_;  // null after it was called
  std::unique_ptr<version> current_;
  std::optional<trial> trial_;
  bool decided_ = false;
};

}  // namespace kiln
