// A loaded program: a plan on a device, and the contexts that run it. An executable is immutable; copies share the
// plan. Any number of threads may run it concurrently, each with its own execution_context, which holds the arena, the
// pointer table and a stream.
//
// A run does not allocate or look anything up unless the plan has interpreted steps. On a GPU, a run enqueues work to
// the stream. The host waits for the device only at the end and where an `if` or a `loop` depends on a value that a
// kernel computes. On a device with graphs, a context can replay the parts of the plan between such waits as graphs, as
// its graph_options say (runtime/graph/). The results are bit-identical either way.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/graph/graph_options.hpp"
#include "runtime/plan_pointers.hpp"
#include "runtime/step_timer.hpp"

namespace kiln {

class graph_replay;
class graph_run;
struct spare_context;

// The mutable state of one run at a time. Made by executable::make_context(); used by one thread at a time. The
// destructor waits for its runs.
class execution_context {
 public:
  execution_context(std::shared_ptr<const plan> what, device& target, const graph_options& graph = {});
  ~execution_context();
  execution_context(execution_context&&) noexcept;
  execution_context& operator=(execution_context&&) = delete;

  // Device memory for all intermediate values; empty if the plan's runs share arenas. Its contents are meaningless
  // between runs.
  std::span<std::byte> arena() const { return {arena_.data(), arena_.size()}; }
  // The stream of the runs that are not given one.
  device_stream& stream() const { return *stream_; }

  graph_report report() const;
  // Whether the next runs still measure which way of launching is the fastest.
  bool measuring() const;
  // The measured or configured way of launching. nullopt before the measurement has ended, or if there is no choice.
  std::optional<graph_decision> decision() const;

 private:
  friend class executable;
  execution_context(std::shared_ptr<const plan> what, device& target, const graph_options& graph, spare_context parts);
  std::shared_ptr<const plan> plan_;
  device_memory arena_, zeroed_;
  std::unique_ptr<device_stream> stream_, own_stream_;  // the context's own stream, and a reference to the device's
  std::unique_ptr<device_event> last_run_;              // end of the last asynchronous run; made by the first
  const device_stream* last_stream_ = nullptr;
  bool clean_ = false;  // whether zeroed_ holds zeros
  plan_pointers pointers_;
  std::unique_ptr<step_timer> timer_;  // made by the first timed run
  std::unique_ptr<graph_replay> replay_;
};

class executable {
 public:
  executable(std::shared_ptr<const kiln::plan> what, device& target) : plan_(std::move(what)), device_(&target) {}

  const kiln::plan& plan() const { return *plan_; }
  device& target() const { return *device_; }
  execution_context make_context(const graph_options& graph = {}) const {
    return execution_context(plan_, *device_, graph);
  }

  // `inputs` and `outputs` are dense row-major tensors in the order of plan().inputs and plan().outputs, in device
  // memory. They are aligned to their element type, on a GPU to 16 bytes where a kernel requires it. Throws
  // error{usage}, naming the tensor, if the number of tensors, a size or an alignment is wrong, or if an output
  // overlaps another tensor. The inputs must be complete before the call, and the outputs are complete on return.
  using input_span = std::span<const std::byte>;
  using output_span = std::span<std::byte>;
  void run(execution_context& context, std::span<const input_span> inputs, std::span<const output_span> outputs) const;

  // Enqueues the run to the caller's stream (device::borrow_stream, device::make_stream) and does not wait for its end.
  // The context may start another run at once, on any stream; its runs are executed one after another. Throws if a
  // launch fails; errors during execution are thrown by the stream's synchronize().
  void run(execution_context& context, std::span<const input_span> inputs, std::span<const output_span> outputs,
           device_stream& stream) const;

  // Runs at least once and until the measurement has ended, so that later runs measure nothing.
  void settle(execution_context& context, std::span<const input_span> inputs,
              std::span<const output_span> outputs) const;

  // Like run(), but without graphs and, if run() would use graphs, on the device's own stream. Adds the device time of
  // every step to `profile`, which the first call sizes.
  void run_timed(execution_context& context, std::span<const input_span> inputs, std::span<const output_span> outputs,
                 run_profile& profile) const;

  // Throws error{invalid_shape} naming the input whose type or dims differ from the plan's.
  void check_inputs(std::span<const shape> types) const;

  // Calls check_inputs and run with a temporary context and temporary tensors, for tools and tests. `report` describes
  // that context.
  std::vector<literal> evaluate(std::span<const literal> inputs,
                                const graph_options& graph = {.policy = graph_policy::off},
                                graph_report* report = nullptr) const;

 private:
  void bind(execution_context& context, std::span<const input_span> inputs, std::span<const output_span> outputs) const;
  void enqueue(execution_context& context, device_stream& stream, graph_run* graphs, step_timer* timer) const;
  std::shared_ptr<const kiln::plan> plan_;
  device* device_;
};

// Makes a plan with make_plan() and an executable from it. `target` must outlive the result.
executable load(const program& source, device& target, const plan_options& options = {});

}  // namespace kiln
