// A loaded program: a plan on a device, and the contexts that run it. An executable is immutable; copies share the
// plan. Any number of threads may run it at the same time, each with an execution_context of its own, which holds the
// arena, the table of pointers and a stream. A run allocates nothing and looks nothing up (unless the plan holds
// interpreted steps). On a GPU it only gives work to the stream; the host waits for the device at its end, and where an
// `if` or a `loop` depends on a value that a kernel made. Where the device has graphs, a context replays the parts of
// the plan between such places as its graph_options say (runtime/graph/); results are the same bits either way.
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

// What one run at a time needs. Made by executable::make_context(); used by one thread at a time. Destroying it waits
// for its runs.
class execution_context {
 public:
  execution_context(std::shared_ptr<const plan> what, device& target, const graph_options& graph = {});
  ~execution_context();
  execution_context(execution_context&&) noexcept;
  execution_context& operator=(execution_context&&) = delete;

  // All intermediate values, in memory of the device; contents mean nothing between runs.
  std::span<std::byte> arena() const { return {arena_.data(), arena_.size()}; }
  // What run() uses.
  device_stream& stream() const { return *stream_; }

  graph_report report() const;
  // Whether the first runs still find out which way is the fastest.
  bool measuring() const;
  // What they found out, or was told; nothing before that, and where there is nothing to find out.
  std::optional<graph_decision> decision() const;

 private:
  friend class executable;
  std::shared_ptr<const plan> plan_;
  device* device_;
  device_memory arena_, zeroed_;
  std::unique_ptr<device_stream> stream_, own_stream_;  // the context's, the device's
  std::unique_ptr<device_event> last_run_;              // the end of the last asynchronous one; made by the first
  const device_stream* last_stream_ = nullptr;
  bool clean_ = false;  // zeroed_ is zero
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

  // Dense row-major tensors in the order of plan().inputs and plan().outputs, in memory of the device, aligned to their
  // element type (to 16 bytes on a GPU where a kernel reads them so). Throws error{usage} that names the tensor when
  // one has the wrong number, size or alignment, or when an output overlaps another tensor. Complete on return, and so
  // must the inputs be when it is called.
  using input_span = std::span<const std::byte>;
  using output_span = std::span<std::byte>;
  void run(execution_context& context, std::span<const input_span> inputs, std::span<const output_span> outputs) const;

  // The same in the order of the caller's stream, without waiting for its end (device::borrow_stream,
  // device::make_stream). The context may run again at once, on any stream: its runs follow one another on the device.
  // What a launch was refused for is thrown; what goes wrong on the device later, the stream's synchronize() throws.
  void run(execution_context& context, std::span<const input_span> inputs, std::span<const output_span> outputs,
           device_stream& stream) const;

  // Runs until nothing is measured any more, which the caller's own runs would do otherwise; once at least.
  void settle(execution_context& context, std::span<const input_span> inputs,
              std::span<const output_span> outputs) const;

  // As run(), without a graph (where other runs may have one, on the device's own stream), adding the time that the
  // device spent in every step to `profile` (sized by the first call).
  void run_timed(execution_context& context, std::span<const input_span> inputs, std::span<const output_span> outputs,
                 run_profile& profile) const;

  // Throws error{usage} naming the input whose type or dims differ.
  void check_inputs(std::span<const shape> types) const;

  // check_inputs and run with a context and tensors made for this call: for tools and tests. `report` is of the
  // context.
  std::vector<literal> evaluate(std::span<const literal> inputs,
                                const graph_options& graph = {.policy = graph_policy::off},
                                graph_report* report = nullptr) const;

 private:
  void bind(execution_context& context, std::span<const input_span> inputs, std::span<const output_span> outputs) const;
  void enqueue(execution_context& context, device_stream& stream, graph_replay* replay, step_timer* timer) const;
  std::shared_ptr<const kiln::plan> plan_;
  device* device_;
};

// make_plan() and an executable over it. `target` must outlive the result.
executable load(const program& source, device& target, const plan_options& options = {});

}  // namespace kiln
