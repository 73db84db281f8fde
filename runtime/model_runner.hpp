// One caller's way to run a loaded model: the memory, the stream and the graphs that stay between its runs. Used by one
// thread at a time. A model may have any number of runners, which do not disturb each other.
#pragma once

#include <functional>
#include <memory>

#include "runtime/executable.hpp"

namespace kiln {

class model_runner {
 public:
  virtual ~model_runner() = default;
  // As executable::run(), without and with the caller's stream.
  virtual void run(std::span<const executable::input_span> inputs,
                   std::span<const executable::output_span> outputs) = 0;
  virtual void run(std::span<const executable::input_span> inputs, std::span<const executable::output_span> outputs,
                   device_stream& stream) = 0;
  // Of the last run, and of the next one unless that changes kernels.
  virtual const execution_context& context() const = 0;
};

// Runs `what` and nothing else. `at_end` is called with the context before it goes; it may be null.
std::unique_ptr<model_runner> make_runner(executable what, const graph_options& graphs,
                                          std::function<void(const execution_context&)> at_end = nullptr);

}  // namespace kiln
