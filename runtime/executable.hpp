// A loaded program: a plan on a device, and the contexts that run it. An executable is immutable; copies share the plan. Any number of threads may
// run it at the same time, each with an execution_context of its own, which holds the arena and the table of pointers.
// A run allocates nothing and looks nothing up (unless the plan holds interpreted steps).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/plan.hpp"

namespace kiln {

// What one run at a time needs. Made by executable::make_context(); used by one thread at a time.
class execution_context {
 public:
  execution_context(std::shared_ptr<const plan> what, device& target);

  // All intermediate values; contents mean nothing between runs.
  std::span<std::byte> arena() const { return {arena_.data(), arena_.size()}; }

 private:
  friend class plan_runner;
  friend class executable;
  std::shared_ptr<const plan> plan_;
  device_memory arena_;
  std::vector<void*> table_;      // per plan buffer, where it is now
  std::vector<void*> arguments_;  // of the launch being made
};

// Time spent in each instruction of a plan, summed over timed runs: entry i belongs to plan::instructions[i].
struct run_profile {
  struct entry {
    std::int64_t nanoseconds = 0, steps = 0;
  };
  std::vector<entry> instructions;
  std::int64_t runs = 0, nanoseconds = 0;
};

class executable {
 public:
  executable(std::shared_ptr<const kiln::plan> what, device& target) : plan_(std::move(what)), device_(&target) {}

  const kiln::plan& plan() const { return *plan_; }
  execution_context make_context() const { return execution_context(plan_, *device_); }

  // Dense row-major tensors in the order of plan().inputs and plan().outputs, in memory of the device, aligned to their element type.
  // Throws error{usage} that names the tensor when one has the wrong number, size or alignment, or when an output overlaps
  // another tensor. Complete on return.
  using input_span = std::span<const std::byte>;
  using output_span = std::span<std::byte>;
  void run(execution_context& context, std::span<const input_span> inputs, std::span<const output_span> outputs) const;

  // The same, waiting after every step and adding its time to `profile` (sized by the first call).
  void run_timed(execution_context& context, std::span<const input_span> inputs, std::span<const output_span> outputs, run_profile& profile) const;

  // Throws error{usage} naming the input whose type or dims differ.
  void check_inputs(std::span<const shape> types) const;

  // check_inputs and run with a context and outputs made for this call: for tools and tests.
  std::vector<literal> evaluate(std::span<const literal> inputs) const;

 private:
  void bind(execution_context& context, std::span<const input_span> inputs, std::span<const output_span> outputs) const;
  std::shared_ptr<const kiln::plan> plan_;
  device* device_;
};

// make_plan() and an executable over it. `target` must outlive the result.
executable load(const program& source, device& target, const plan_options& options = {});

}  // namespace kiln
