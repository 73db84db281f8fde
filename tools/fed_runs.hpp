// Updates a model's tensors between two runs of a measurement: outputs become inputs by swapping their device buffers,
// and counters are incremented by one. Used by one thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/io_buffers.hpp"

namespace kiln::tools {

class fed_runs {
 public:
  // `feeds`: OUTPUT=INPUT texts; `counters`: names of integer inputs with one element. `inputs` are the values of the
  // plan's inputs. Throws error{usage} for names that the plan does not have and tensors that do not fit.
  fed_runs(const plan& of, const std::vector<std::string>& feeds, const std::vector<std::string>& counters,
           std::span<const literal> inputs);

  bool empty() const { return feeds_.empty() && counters_.empty(); }
  // Restores the initial values.
  void start(io_buffers& tensors);
  // Prepares the next run on `stream`, after a run was queued there.
  void next(io_buffers& tensors, device& on, device_stream* stream);

 private:
  struct counter {
    std::size_t input = 0;
    std::int64_t first = 0, now = 0;
    std::size_t bytes = 0;
  };
  std::vector<std::pair<std::size_t, std::size_t>> feeds_;  // output, input
  std::vector<counter> counters_;
  std::vector<literal> inputs_;
};

}  // namespace kiln::tools
