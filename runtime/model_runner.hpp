// Runs a loaded model for one caller; keeps memory, stream and graphs between runs. Used by one thread at a time. A
// model can have any number of independent runners.
#pragma once

#include <functional>
#include <memory>

#include "runtime/executable.hpp"

namespace kiln {

class model_runner {
 public:
  virtual ~model_runner() = default;
  // Like executable::run(), without and with a stream of the caller.
  virtual void run(std::span<const executable::input_span> inputs,
                   std::span<const executable::output_span> outputs) = 0;
  virtual void run(std::span<const executable::input_span> inputs, std::span<const executable::output_span> outputs,
                   device_stream& stream) = 0;
  // The context of the last run. The next run uses the same one unless kernels are replaced.
  virtual const execution_context& context() const = 0;
};

// Returns a runner for `what` without tuning. `at_end`, which may be null, is called with the context before it is
// destroyed.
std::unique_ptr<model_runner> make_runner(executable what, const graph_options& graphs,
                                          std::function<void(const execution_context&)> at_end = nullptr);

}  // namespace kiln
